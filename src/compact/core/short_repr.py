"""Reprs that fit a line: a plan of a thousand messages is looked at in a debugger, too."""

from __future__ import annotations

from collections.abc import Sized
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any

_MAX_CHARS = 110
_MAX_TEXT_CHARS = 40


def short_repr(self: Any) -> str:
    """Return `Name(field=value, …)` for a dataclass, on one line; use it as `__repr__ = short_repr`.

    Fields at their default are left out, long texts are cut, and of collections it says how many they hold.
    """
    name, shown = type(self).__name__, list[str]()
    room = _MAX_CHARS - len(name) - len("(, …)")
    for field in fields(self):
        value = getattr(self, field.name)
        if not field.repr or _is_default(field, value):
            continue
        text = f"{field.name}={_short(value)}"
        if len(text) > room:
            shown.append("…")
            break
        shown.append(text)
        room -= len(text) + len(", ")
    return f"{name}({', '.join(shown)})"


def _is_default(field: Field[Any], value: object) -> bool:
    if field.default is not MISSING:
        return bool(value == field.default)
    return field.default_factory is not MISSING and isinstance(value, Sized) and not len(value)


def _short(value: object) -> str:
    if isinstance(value, str):
        return repr(value if len(value) <= _MAX_TEXT_CHARS else value[: _MAX_TEXT_CHARS - 1] + "…")
    if isinstance(value, Sized) and not is_dataclass(value):
        return f"<{len(value):,}>"
    return f"{type(value).__name__}(…)" if is_dataclass(value) else repr(value)
