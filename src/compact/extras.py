"""The line that installs an extra, from wherever Compact itself was installed: a folder, a repository or an index."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any
from urllib.parse import unquote, urlsplit

_DISTRIBUTION = "compact-context"


def install_line(extra: str) -> str:
    """Return the command that installs what an extra needs, to be copied as it is."""
    origin = _origin()
    url = str(origin.get("url", ""))
    if "dir_info" in origin:
        option = "-e " if origin["dir_info"].get("editable") else ""
        return f"pip install {option}'{unquote(urlsplit(url).path)}[{extra}]'"
    if "vcs_info" in origin:
        return f"pip install '{_DISTRIBUTION}[{extra}] @ {origin['vcs_info']['vcs']}+{url}'"
    return f"pip install '{_DISTRIBUTION}[{extra}]'"


def _origin() -> dict[str, Any]:
    """Return where Compact came from, as its installer wrote it down (PEP 610); nothing for an index."""
    try:
        written = distribution(_DISTRIBUTION).read_text("direct_url.json")
    except PackageNotFoundError:  # run from a folder that was never installed
        return {}
    return json.loads(written) if written else {}
