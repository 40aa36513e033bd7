"""Packages that only those who use them need: loaded late, and named with the extra that installs them."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from compact.core.errors import ConfigError


def load(package: str, *, extra: str) -> Any:
    """The package, or an error that says how to get it."""
    require(package, extra=extra)
    return import_module(package)


def require(package: str, *, extra: str) -> None:
    """Say at once if a package is not there, without the cost of loading it."""
    if find_spec(package) is None:
        raise ConfigError(
            f"the summariser needs the package {package}",
            field="summarizer.provider",
            hint=f"pip install 'compact-context[{extra}]', or set summarizer.kind to extractive",
        )
