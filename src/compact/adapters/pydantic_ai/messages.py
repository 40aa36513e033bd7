"""pydantic-ai's messages as a dialect: each part of a request is an entry, and a response is one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, TypeAlias, cast

from pydantic_ai.messages import (
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextContent,
    ToolReturnPart,
    UserPromptPart,
)

from compact.core.json_data import is_list, is_mapping
from compact.core.messages.entries import read_entry
from compact.core.messages.legality import Violation, check_chat
from compact.dialects.dialect import META, NATIVE, Block, Entry, foreign, without
from compact.dialects.turns import OPENING

Data: TypeAlias = dict[str, Any]

# The key of `metadata` under which a text or a tool's return has our `meta`: {"compact": {"protected": True}}.
# Messages have metadata, too, but lose it when the framework merges those that follow each other.
MARK = "compact"

# What we make has no time: the same prompt must be the same every time.
_NO_TIME = datetime.fromtimestamp(0, UTC)
_NO_TIME_TEXT = "1970-01-01T00:00:00Z"
# What a response says of itself that its provider may want to see again. The ids of what a server keeps are left out:
# the server would continue from a response whose past is another one now.
_RESPONSE_FIELDS = (
    *("model_name", "timestamp", "provider_name", "provider_url", "canonical_system"),
    *("provider_details", "finish_reason", "state"),
)


def protected(text: str) -> TextContent:
    """Return a text of the user that no compaction will touch.

    Args:
        text: What it says.

    Example:
        >>> from compact.adapters.pydantic_ai import protected
        >>> prompt = [protected("Never round a figure."), "Read the reports 1 to 30."]  # agent.run(prompt)
        >>> prompt[0].content
        'Never round a figure.'
    """
    return TextContent(text, metadata={MARK: {"protected": True}})


class PydanticAIDialect:
    """`ModelRequest` and `ModelResponse`, whatever model they are for.

    The capability uses it by itself; name it where you call the manager with such messages.

    Args:
        flag: The key of a part's metadata, in `compact`, that protects it.

    Example:
        >>> from pydantic_ai.messages import ModelRequest
        >>> from compact import CompactManager
        >>> from compact.adapters.pydantic_ai import PydanticAIDialect
        >>> messages = [ModelRequest.user_text_prompt("Hello")]
        >>> len(CompactManager().preflight("chat-1", messages, dialect=PydanticAIDialect()))
        1
    """

    name = "pydantic_ai"

    def __init__(self, flag: str = "protected") -> None:
        self._flag = flag

    def recognises(self, item: object) -> bool | None:
        """Return True for pydantic-ai's own messages, which no other dialect has."""
        return isinstance(item, ModelRequest | ModelResponse)

    def read(self, items: Sequence[Any], place: int) -> Iterator[Block]:
        """Yield one entry for a response, and one for each part of a request, results first, behind their calls."""
        for number, item in enumerate(items, place):
            if isinstance(item, ModelResponse):
                yield Block((item,), (_response_entry(item),))
            elif isinstance(item, ModelRequest):
                yield Block((item,), tuple(self._request_entries(item)))
            else:
                raise foreign(item, number, self.name)

    def write(self, entries: Sequence[Entry]) -> Iterator[Block]:
        """Yield responses one by one, and all entries between two of them as one request, as the framework does."""
        between: list[Entry] = []
        for entry in entries:
            if not _is_response(entry):
                between.append(entry)
                continue
            if between:
                yield Block((_request(between),), tuple(between))
            yield Block((_response(entry),), (entry,))
            between = []
        if between:
            yield Block((_request(between),), tuple(between))

    def join(self, blocks: Sequence[Block]) -> Sequence[Block]:
        """Have a prompt begin with the user, and give results that we made the name of the tool that was called."""
        joined: list[Block] = []
        names: dict[str, str] = {}
        has_begun = False
        for block in blocks:
            message = block.items[0] if block.items else None
            if isinstance(message, ModelResponse):
                names |= {part.tool_call_id: part.tool_name for part in message.tool_calls}
                if not has_begun:
                    opening = UserPromptPart(OPENING, timestamp=_NO_TIME)
                    joined.append(Block((ModelRequest([opening]),), ()))
            elif isinstance(message, ModelRequest) and any(map(_is_nameless, message.parts)):
                block = Block((_with_tool_names(message, names),), block.entries)
            has_begun = has_begun or isinstance(message, ModelResponse) or _is_by_user(message)
            joined.append(block)
        return joined

    def check(self, items: Sequence[Any]) -> tuple[Violation, ...]:
        """Return what no provider would take: unpaired calls and results, empty messages, a model that begins."""
        entries = [entry for block in self.read(items, 0) for entry in block.entries]
        first = next((entry["role"] for entry in entries if entry["role"] != "system"), "user")
        begins = () if first == "user" else (Violation("first_is_user", 0, f"the first to speak is {first}"),)
        messages = [read_entry(entry, f"messages[{place}]") for place, entry in enumerate(entries)]
        return (*begins, *check_chat(messages))

    def _request_entries(self, request: ModelRequest) -> list[Entry]:
        data = _dump(request)
        entries = [self._part_entry(part, own) for part, own in zip(data["parts"], request.parts, strict=True)]
        return sorted(entries, key=lambda entry: entry["role"] != "tool")

    def _part_entry(self, part: Data, original: Any) -> Entry:
        kind = part["part_kind"]
        if kind == "system-prompt":
            return _entry("system", part, part["content"])
        if kind == "user-prompt":
            content, layout = split_content(part["content"], is_prompt=True)
            marks = [_mark(item) for item in part["content"] if is_mapping(item)]
            meta = {key: value for mark in marks for key, value in mark.items()}
            return _entry("user", part, content, layout, meta=meta)
        if kind == "tool-return":
            content, layout = split_content(part["content"], is_prompt=False)
            # What reveals tools to the model is state of the framework: without it, the tools would be gone.
            meta = {**_mark(part), **({self._flag: True} if part.get("tool_kind") else {})}
            return _entry("tool", part, content, layout, call_id=part["tool_call_id"], meta=meta)
        return _other_entry(part, original)


# -- messages to entries ----------------------------------------------------------------------------------------------


def _entry(
    role: str, part: Data, content: Any, layout: Any = None, *, call_id: str = "", meta: Data | None = None
) -> Entry:
    native: Data = {"part": _set_fields(part, "content", "tool_call_id"), **({"layout": layout} if layout else {})}
    of_call = {"tool_call_id": call_id} if call_id else {}
    return {"role": role, "content": content, **of_call, **({META: meta} if meta else {}), NATIVE: native}


def _other_entry(part: Data, original: Any) -> Entry:
    """Return an entry for a part that the framework wrote: what the model reads of it, and the part as a whole."""
    render = getattr(original, "model_response", None)
    text = str(render()) if callable(render) else part.get("content")
    is_read = isinstance(text, str) and bool(text)
    # What the model does not read is a note of the framework for itself: an entry of the system's role always stays.
    shown = text if is_read else f"[{part['part_kind']}]"
    native = {"whole": part, "text": shown}
    if part.get("tool_call_id") and part.get("tool_name"):
        return {"role": "tool", "tool_call_id": part["tool_call_id"], "content": shown, NATIVE: native}
    return {"role": "user" if is_read else "system", "content": shown, NATIVE: native}


def _response_entry(response: ModelResponse) -> Entry:
    data = _dump(response)
    content, calls, layout = split_response(data["parts"])
    kept = {key: data[key] for key in _RESPONSE_FIELDS if data.get(key) is not None}
    return {
        "role": "assistant",
        "content": content,
        **({"tool_calls": calls} if calls else {}),
        NATIVE: {"layout": layout, "data": kept},
    }


def _mark(data: Mapping[str, Any]) -> Data:
    metadata = data.get("metadata")
    mark = metadata.get(MARK) if is_mapping(metadata) else None
    return dict(mark) if is_mapping(mark) else {}


def _dump(message: ModelRequest | ModelResponse) -> Data:
    return ModelMessagesTypeAdapter.dump_python([message], mode="json")[0]


# -- entries to messages ----------------------------------------------------------------------------------------------


def _is_response(entry: Entry) -> bool:
    """Return True for what the model said; a summary is put into a request, because some providers want it so."""
    return entry["role"] == "assistant" and (NATIVE in entry or bool(entry.get("tool_calls")))


def _response(entry: Entry) -> ModelResponse:
    native = entry.get(NATIVE, {})
    data = native.get("data") or {"timestamp": _NO_TIME_TEXT}
    parts = join_response(entry.get("content"), entry.get("tool_calls") or (), native.get("layout") or ())
    return cast(ModelResponse, _load({"kind": "response", **data, "parts": parts}))


def _request(entries: Sequence[Entry]) -> ModelRequest:
    return cast(ModelRequest, _load({"kind": "request", "parts": [_part(entry) for entry in entries]}))


def _part(entry: Entry) -> Data:
    native, content, role = entry.get(NATIVE, {}), entry.get("content"), entry["role"]
    if "whole" in native and native["text"] == content:
        return native["whole"]
    if "part_kind" in native.get("part", ()):  # without it, the part is one of another dialect
        part = {**native["part"], "content": join_content(content, native.get("layout"))}
        return {**part, "tool_call_id": entry["tool_call_id"]} if role == "tool" else part
    text = content if isinstance(content, str) else join_content(content, None)
    if role == "tool":
        name = native.get("whole", {}).get("tool_name", "")
        own = {"part_kind": "tool-return", "tool_name": name, "tool_call_id": entry["tool_call_id"]}
        return {**own, "content": text, "timestamp": _NO_TIME_TEXT}
    kind = "system-prompt" if role in ("system", "developer") else "user-prompt"
    return {"part_kind": kind, "content": text or "", "timestamp": _NO_TIME_TEXT}


def _is_by_user(message: object) -> bool:
    parts = message.parts if isinstance(message, ModelRequest) else ()
    return any(not isinstance(part, SystemPromptPart) for part in parts)


def _is_nameless(part: object) -> bool:
    return isinstance(part, ToolReturnPart) and not part.tool_name


def _with_tool_names(message: ModelRequest, names: Mapping[str, str]) -> ModelRequest:
    parts = [
        replace(part, tool_name=names.get(part.tool_call_id, "tool"))
        if isinstance(part, ToolReturnPart) and not part.tool_name
        else part
        for part in message.parts
    ]
    return replace(message, parts=parts)


def _load(data: Data) -> ModelRequest | ModelResponse:
    return ModelMessagesTypeAdapter.validate_python([data])[0]


# -- content: the parts of messages, as JSON, split into what entries hold, and joined again --------------------------

# How an item of the content, or the arguments of a call, was written.
_STRING, _JSON, _RAW, _IMAGE, _NONE = "str", "json", "raw", "image", "none"
_CALL = "call"
_TEXT_KINDS = ("text-content", "structured-content")
# Pictures, recordings, documents, and marks of a cache: whatever says its kind, and is not text.
_FILE_KINDS = ("image-url", "audio-url", "video-url", "document-url", "binary", "uploaded-file", "cache-point")


def split_content(content: Any, *, is_prompt: bool) -> tuple[Any, Any]:
    """Return the content of a prompt or of a tool's return as that of an entry, and how to put it together again.

    A model reads a return that is no text as JSON, unless there are files in it.
    """
    if isinstance(content, str):
        return content, None
    if not isinstance(content, list) or not content:
        return "" if content is None else _write_json(content), _JSON
    items = cast(list[Any], content)
    if not is_prompt and not any(_has_kind(item, _FILE_KINDS) for item in items):
        return _write_json(items), _JSON
    parts, layout = zip(*(_split_item(item) for item in items), strict=True)
    return list(parts), list(layout)


def join_content(content: Any, layout: Any) -> Any:
    """Return what was split; where the content was replaced, the new text as it is."""
    if layout == _JSON:
        return _read_json(content) if isinstance(content, str) else content
    if not is_list(content):
        return content
    if not isinstance(layout, list) or len(content) != len(places := cast(list[Any], layout)):
        has_files = any(_is_file(part) for part in content)
        return [_write_item(part) for part in content] if has_files else "\n".join(_text(part) for part in content)
    return [_join_item(part, place) for part, place in zip(content, places, strict=True)]


def _split_item(item: Any) -> tuple[Data, Any]:
    if isinstance(item, str):
        return {"type": "text", "text": item}, _STRING
    if _has_kind(item, _TEXT_KINDS):
        return {"type": "text", "text": item["content"]}, without(item, "content")
    if not _has_kind(item, _FILE_KINDS):
        return {"type": "text", "text": _write_json(item)}, _JSON
    if item["kind"] == "image-url":
        return {"type": "image_url", "image_url": {"url": item["url"]}}, {_IMAGE: without(item, "url")}
    if item["kind"] == "binary" and str(item.get("media_type")).startswith("image/"):
        url = f"data:{item['media_type']};base64,{item['data']}"
        return {"type": "image_url", "image_url": {"url": url}}, {_IMAGE: without(item, "data")}
    return {"type": item["kind"], **item}, _RAW


def _join_item(part: Mapping[str, Any], place: Any) -> Any:
    if place == _STRING:
        return part["text"]
    if place == _JSON:
        return _read_json(part["text"])
    if place == _RAW:
        return without(part, "type")
    if _IMAGE not in place:
        return {**place, "content": part["text"]}
    url = part["image_url"]["url"]
    own = place[_IMAGE]
    return {**own, "url": url} if own["kind"] == "image-url" else {**own, "data": url.partition(";base64,")[2]}


def _is_file(part: object) -> bool:
    return is_mapping(part) and (part.get("type") == "image_url" or _has_kind(part, _FILE_KINDS))


def _write_item(part: Any) -> Any:
    """Return a part of a message that we made, such as an attachment that is shown again."""
    if not _is_file(part):
        return _text(part)
    if part["type"] != "image_url":
        return without(part, "type")
    url = part["image_url"]["url"]
    if not url.startswith("data:"):
        return {"kind": "image-url", "url": url}
    media_type, _, data = url.removeprefix("data:").partition(";base64,")
    return {"kind": "binary", "media_type": media_type, "data": data}


def split_response(parts: Sequence[Data]) -> tuple[Any, list[Data], list[Any]]:
    """Return what a model said as content, its calls, and how to put both together again."""
    texts: list[Data] = []
    calls: list[Data] = []
    layout: list[Any] = []
    for part in parts:
        kind = part["part_kind"]
        if kind == "tool-call":
            arguments, form = _split_arguments(part["args"])
            function = {"name": part["tool_name"], "arguments": arguments}
            calls.append({"id": part["tool_call_id"], "type": "function", "function": function})
            layout.append([_CALL, form, _set_fields(part, "tool_name", "args", "tool_call_id")])
        elif kind in ("text", "thinking"):
            texts.append({"type": kind, kind: part["content"]})
            layout.append([kind, None, _set_fields(part, "content")])
        else:
            texts.append({"type": kind, **part})
            layout.append([_RAW, None, {}])
    is_one_text = len(texts) == 1 and texts[0]["type"] == "text"
    return texts[0]["text"] if is_one_text else texts or (None if calls else ""), calls, layout


def join_response(content: Any, calls: Sequence[Mapping[str, Any]], layout: Sequence[Any]) -> list[Data]:
    """Return the parts of a response from its entry, whatever has become shorter."""
    parts: list[Any] = list(content) if is_list(content) else [{"type": "text", "text": content}] if content else []
    places = [place for place in layout if place[0] != _CALL]
    is_whole = len(parts) == len(places) and all(_fits(part, place) for part, place in zip(parts, places, strict=True))
    joined: list[Data] = []
    if not is_whole:
        joined += [{"part_kind": "text", "content": text} for part in parts if (text := _text(part))]
    rest, open_calls = iter(parts), iter(calls)
    for place in layout:
        if place[0] != _CALL:
            joined += [_join_text(next(rest), place)] if is_whole else []
        elif (call := next(open_calls, None)) is not None:
            joined.append(_join_call(call, place[1], place[2]))
    return joined + [_join_call(call, _STRING, {"part_kind": "tool-call"}) for call in open_calls]


def _fits(part: Mapping[str, Any], place: Sequence[Any]) -> bool:
    return place[0] == part.get("type") or (place[0] == _RAW and "part_kind" in part)


def _join_text(part: Mapping[str, Any], place: Sequence[Any]) -> Data:
    kind, _, fields = place
    return without(part, "type") if kind == _RAW else {**fields, "content": part[kind]}


def _join_call(call: Mapping[str, Any], form: str, fields: Mapping[str, Any]) -> Data:
    function = call["function"]
    arguments: Any = function["arguments"]
    if form == _JSON:
        arguments = _read_json(arguments)
    elif form == _NONE and not arguments:
        arguments = None
    return {**fields, "tool_name": function["name"], "args": arguments, "tool_call_id": call["id"]}


def _split_arguments(arguments: Any) -> tuple[str, str]:
    if arguments is None:
        return "", _NONE
    return (arguments, _STRING) if isinstance(arguments, str) else (_write_json(arguments), _JSON)


def _set_fields(part: Mapping[str, Any], *left_out: str) -> Data:
    """Return the fields of a part that are set, without some of them."""
    return {key: value for key, value in part.items() if key not in left_out and value is not None}


def _has_kind(item: object, kinds: Sequence[str]) -> bool:
    return is_mapping(item) and item.get("kind") in kinds


def _text(part: object) -> str:
    return str(part.get("text") or part.get("thinking") or "") if is_mapping(part) else str(part)


def _write_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _read_json(text: str) -> Any:
    """Return what a text says as JSON; the text itself where it was replaced by one that is none."""
    if not text:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
