"""What an object holds, however far away: for tests that something is kept nowhere."""

from __future__ import annotations

import gc
import types
from collections.abc import Iterator

# They lead to everything in the process, the test among it.
_CODE = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.CodeType, types.FrameType)


def reachable(*roots: object) -> Iterator[object]:
    """Everything that these objects hold, code left out."""
    seen: set[int] = set()
    waiting = list(roots)
    while waiting:
        current = waiting.pop()
        if id(current) in seen or isinstance(current, _CODE):
            continue
        seen.add(id(current))
        yield current
        waiting += gc.get_referents(current)


def texts_with(mark: str, *roots: object) -> list[str | bytes]:
    """All texts with a mark in them that these objects hold, as characters or as bytes."""
    found: list[str | bytes] = []
    for each in reachable(*roots):
        if isinstance(each, str):
            found += [each] if mark in each else []
        elif isinstance(each, bytes | bytearray):
            found += [bytes(each)] if mark.encode() in each else []
    return found
