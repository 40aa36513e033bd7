"""The sections of the settings, each with its path in a file."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import TypeGuard, get_args

from pydantic import BaseModel

WHOLE = "The whole"


def setting_sections(path: str, model: type[BaseModel]) -> Iterator[tuple[str, type[BaseModel]]]:
    """Yield a section and those in it; `NAME` stands in the path for a name that users choose."""
    yield path or WHOLE, model
    for name, field in model.model_fields.items():
        there = f"{path}.{name}" if path else name
        kind = field.annotation
        if is_section(kind):
            yield from setting_sections(there, kind)
        for each in get_args(kind):
            if is_section(each):
                yield from setting_sections(f"{there}.NAME", each)


def is_section(kind: object) -> TypeGuard[type[BaseModel]]:
    """Return True for the class of a section."""
    return inspect.isclass(kind) and issubclass(kind, BaseModel)
