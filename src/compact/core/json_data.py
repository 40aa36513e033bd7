"""What JSON is made of, for the type checker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard


def is_mapping(value: object) -> TypeGuard[Mapping[str, Any]]:
    """Return True for a mapping, which is taken to have text for its keys, as all JSON has."""
    return isinstance(value, dict) or isinstance(value, Mapping)  # noqa: SIM101 - most are dicts, which is quick to see


def is_list(value: object) -> TypeGuard[Sequence[Any]]:
    """Return True for a list or a tuple."""
    return isinstance(value, list | tuple)
