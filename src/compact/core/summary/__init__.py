"""summary."""

from __future__ import annotations

from typing import Any

from compact.core.former_names import former_name


def __getattr__(name: str) -> Any:
    """Return a name of the module that this room was once."""
    return former_name(__name__, name)
