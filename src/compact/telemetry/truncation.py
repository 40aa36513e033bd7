"""Make data fit for a wire or a line: JSON values only, texts and lists no longer than allowed, a mark at each cut."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, cast

from compact.core.control_characters import STEERING
from compact.core.plurals import quantity

# Chosen: deeper than any event goes, and far from Python's own limit of recursion.
_MAX_DEPTH = 50
# Chosen: more than a list of message ids has in a long session; halved where the whole does not fit.
_MAX_ITEMS = 10_000
# Chosen: below these a text or a list says nothing any more.
_LEAST_TEXT, _LEAST_ITEMS = 100, 20
# Terminals act on these: they clear the screen, set the title or move the cursor. Blanks and line ends are no such.
_CONTROLS = re.compile(rf"[\x00-\x08\x0b-\x1f{STEERING}]")


def one_line(text: str) -> str:
    """Return the text as one line, with every control character replaced."""
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", " ".join(text.split()))


def encode_json(value: object) -> bytes:
    """Return JSON in UTF-8; what UTF-8 cannot encode is replaced."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8", "replace")


def to_json_value(value: Any, *, max_text: int, max_items: int, depth: int = 0) -> Any:
    """Return a copy that JSON can hold; longer texts and lists are cut, with a mark."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return truncate_text(value, max_text)
    if depth >= _MAX_DEPTH:
        return "… [nested too deeply]"
    if isinstance(value, Mapping):
        items = list(cast(Mapping[Any, Any], value).items())
        kept = {
            truncate_text(str(name), max_text): to_json_value(
                item, max_text=max_text, max_items=max_items, depth=depth + 1
            )
            for name, item in items[:max_items]
        }
        return {**kept, "…": f"[cut: {len(items) - max_items:,} more]"} if len(items) > max_items else kept
    if isinstance(value, list | tuple | set | frozenset):
        rest = list(cast("list[Any]", value))
        kept_items = [
            to_json_value(item, max_text=max_text, max_items=max_items, depth=depth + 1) for item in rest[:max_items]
        ]
        return [*kept_items, f"… [cut: {len(rest) - max_items:,} more]"] if len(rest) > max_items else kept_items
    return truncate_text(str(value), max_text)


def truncate_text(text: str, max_text: int) -> str:
    """Return the text, or its beginning and how long it was."""
    if len(text) <= max_text:
        return text
    mark = f"… [cut: {quantity(len(text), 'character')}]"
    return text[: max(0, max_text - len(mark))] + mark


def truncate_to_size(data: Mapping[str, Any], *, max_text: int, max_bytes: int) -> tuple[dict[str, Any], bool]:
    """Return data that fits, and whether anything was cut: texts and lists get shorter together until it does."""
    max_items = _MAX_ITEMS
    result = to_json_value(data, max_text=max_text, max_items=max_items)
    is_cut = _longest_text(data) > max_text
    while len(encode_json(result)) > max_bytes and max_text > _LEAST_TEXT:
        max_text, max_items, is_cut = max_text // 2, max(_LEAST_ITEMS, max_items // 4), True
        result = to_json_value(data, max_text=max_text, max_items=max_items)
    return result, is_cut


def _longest_text(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return max(map(_longest_text, cast(Mapping[Any, Any], value).values()), default=0)
    return max(map(_longest_text, cast("list[Any]", value)), default=0) if isinstance(value, list | tuple) else 0
