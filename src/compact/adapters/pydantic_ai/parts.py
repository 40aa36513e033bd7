"""The parts of pydantic-ai's messages, as JSON, to entries and back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from compact.dialects.dialect import without

Data: TypeAlias = dict[str, Any]

_STR, _JSON, _RAW, _IMAGE = "str", "json", "raw", "image"


def split_content(content: Any, *, is_prompt: bool) -> tuple[Any, Any]:
    """The content of a prompt or of a tool's return as that of an entry, and how it is put together again.

    A model reads a return that is no text as JSON, unless there are files in it.
    """
    if isinstance(content, str):
        return content, None
    if not isinstance(content, list) or not content or not (is_prompt or any(map(_is_file, content))):
        return "" if content is None else _compact_json(content), _JSON
    parts, layout = zip(*(_split_item(item) for item in content), strict=True)
    return list(parts), list(layout)


def join_content(content: Any, layout: Any) -> Any:
    """What was split, or the new text as it is where the content was replaced."""
    if layout == _JSON:
        return _from_json(content) if isinstance(content, str) else content
    parts = list(content) if isinstance(content, list | tuple) else None
    if parts is None or not isinstance(layout, list) or len(parts) != len(layout):
        return "\n".join(_text(part) for part in parts) if parts is not None else content
    return [_join_item(part, place) for part, place in zip(parts, layout, strict=True)]


def _split_item(item: Any) -> tuple[Data, Any]:
    if isinstance(item, str):
        return {"type": "text", "text": item}, _STR
    if _is_text(item):
        return {"type": "text", "text": item["content"]}, without(item, "content")
    if not _is_file(item):
        return {"type": "text", "text": _compact_json(item)}, _JSON
    if item["kind"] == "image-url":
        return {"type": "image_url", "image_url": {"url": item["url"]}}, {_IMAGE: without(item, "url")}
    if item["kind"] == "binary" and str(item.get("media_type")).startswith("image/"):
        url = f"data:{item['media_type']};base64,{item['data']}"
        return {"type": "image_url", "image_url": {"url": url}}, {_IMAGE: without(item, "data")}
    return {"type": item["kind"], **item}, _RAW


def _join_item(part: Mapping[str, Any], place: Any) -> Any:
    if place == _STR:
        return part["text"]
    if place == _JSON:
        return _from_json(part["text"])
    if place == _RAW:
        return without(part, "type")
    if _IMAGE not in place:
        return {**place, "content": part["text"]}
    url = part["image_url"]["url"]
    own = place[_IMAGE]
    return {**own, "url": url} if own["kind"] == "image-url" else {**own, "data": url.partition(";base64,")[2]}


def split_response(parts: Sequence[Data]) -> tuple[Any, list[Data], list[Any]]:
    """What a model said as content, its calls, and how both are put together again."""
    said: list[Data] = []
    calls: list[Data] = []
    layout: list[Any] = []
    for part in parts:
        kind = part["part_kind"]
        if kind == "tool-call":
            arguments, form = _split_arguments(part["args"])
            function = {"name": part["tool_name"], "arguments": arguments}
            calls.append({"id": part["tool_call_id"], "type": "function", "function": function})
            layout.append(["call", form, _rest(part, "tool_name", "args", "tool_call_id")])
        elif kind in ("text", "thinking"):
            said.append({"type": kind, kind: part["content"]})
            layout.append([kind, None, _rest(part, "content")])
        else:
            said.append({"type": kind, **part})
            layout.append([_RAW, None, {}])
    is_plain = len(said) == 1 and said[0]["type"] == "text"
    return said[0]["text"] if is_plain else said or (None if calls else ""), calls, layout


def join_response(content: Any, calls: Sequence[Mapping[str, Any]], layout: Sequence[Any]) -> list[Data]:
    """The parts of a response from its entry, whatever has become shorter."""
    parts = (
        list(content) if isinstance(content, list | tuple) else [{"type": "text", "text": content}] if content else []
    )
    places = [place for place in layout if place[0] != "call"]
    is_whole = len(parts) == len(places) and all(_fits(part, place) for part, place in zip(parts, places, strict=True))
    joined = [] if is_whole else [{"part_kind": "text", "content": text} for part in parts if (text := _text(part))]
    rest, open_calls = iter(parts), iter(calls)
    for place in layout:
        if place[0] != "call":
            joined += [_join_said(next(rest), place)] if is_whole else []
        elif (call := next(open_calls, None)) is not None:
            joined.append(_join_call(call, place[1], place[2]))
    return joined + [_join_call(call, _STR, {"part_kind": "tool-call"}) for call in open_calls]


def _fits(part: Mapping[str, Any], place: Sequence[Any]) -> bool:
    return place[0] == part.get("type") or (place[0] == _RAW and "part_kind" in part)


def _join_said(part: Mapping[str, Any], place: Sequence[Any]) -> Data:
    kind, _, rest = place
    return without(part, "type") if kind == _RAW else {**rest, "content": part[kind]}


def _join_call(call: Mapping[str, Any], form: str, rest: Mapping[str, Any]) -> Data:
    function = call["function"]
    arguments: Any = function["arguments"]
    if form == _JSON:
        arguments = _from_json(arguments)
    elif form == "none" and not arguments:
        arguments = None
    return {**rest, "tool_name": function["name"], "args": arguments, "tool_call_id": call["id"]}


def _split_arguments(arguments: Any) -> tuple[str, str]:
    if arguments is None:
        return "", "none"
    return (arguments, _STR) if isinstance(arguments, str) else (_compact_json(arguments), _JSON)


def _rest(part: Mapping[str, Any], *keys: str) -> Data:
    return {key: value for key, value in part.items() if key not in keys and value is not None}


def _is_text(item: object) -> bool:
    return isinstance(item, Mapping) and item.get("kind") in ("text-content", "structured-content")


def _is_file(item: object) -> bool:
    """Pictures, recordings, documents, and marks of a cache: whatever says its kind, and is not text."""
    kinds = ("image-url", "audio-url", "video-url", "document-url", "binary", "uploaded-file", "cache-point")
    return isinstance(item, Mapping) and item.get("kind") in kinds


def _text(part: object) -> str:
    return str(part.get("text") or part.get("thinking") or "") if isinstance(part, Mapping) else str(part)


def _compact_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _from_json(text: str) -> Any:
    """What a text says as JSON; the text itself where it was replaced by one that is none."""
    if not text:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return text
