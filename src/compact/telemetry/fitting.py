"""Makes data fit for a wire: plain JSON, no text and no whole longer than allowed, and a mark wherever it was cut."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, cast

_MAX_DEPTH = 50
# A terminal takes some of them for orders: to clear the screen, to set its title, to write over what stands there.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def one_line(text: str) -> str:
    """The text as one line, with every control character replaced."""
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", " ".join(text.split()))


def to_json(value: object) -> bytes:
    """UTF-8, with what UTF-8 cannot say replaced."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8", "replace")


def plain(value: Any, *, max_text: int, max_items: int, depth: int = 0) -> Any:
    """A copy that JSON can say; texts and lists end after so many characters and items, with a mark."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return cut_text(value, max_text)
    if depth >= _MAX_DEPTH:
        return "… [nested too deeply]"
    if isinstance(value, Mapping):
        items = list(cast(Mapping[Any, Any], value).items())
        kept = {
            cut_text(str(name), max_text): plain(item, max_text=max_text, max_items=max_items, depth=depth + 1)
            for name, item in items[:max_items]
        }
        return {**kept, "…": f"[cut: {len(items) - max_items:,} more]"} if len(items) > max_items else kept
    if isinstance(value, list | tuple | set | frozenset):
        rest = list(cast("list[Any]", value))
        kept_items = [plain(i, max_text=max_text, max_items=max_items, depth=depth + 1) for i in rest[:max_items]]
        return [*kept_items, f"… [cut: {len(rest) - max_items:,} more]"] if len(rest) > max_items else kept_items
    return cut_text(str(value), max_text)


def cut_text(text: str, max_text: int) -> str:
    """The text, or its beginning and how much is missing."""
    if len(text) <= max_text:
        return text
    mark = f"… [cut: {len(text):,} characters]"
    return text[: max(0, max_text - len(mark))] + mark


def fitted(data: Mapping[str, Any], *, max_text: int, max_bytes: int) -> tuple[dict[str, Any], bool]:
    """Data that fits, and whether anything was cut for it: texts and lists get shorter together until it does."""
    max_items = 10_000
    result = plain(data, max_text=max_text, max_items=max_items)
    is_cut = _longest(data) > max_text
    while len(to_json(result)) > max_bytes and max_text > 100:
        max_text, max_items, is_cut = max_text // 2, max(20, max_items // 4), True
        result = plain(data, max_text=max_text, max_items=max_items)
    return result, is_cut


def _longest(value: Any) -> int:
    """The length of the longest text."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return max(map(_longest, cast(Mapping[Any, Any], value).values()), default=0)
    return max(map(_longest, cast("list[Any]", value)), default=0) if isinstance(value, list | tuple) else 0
