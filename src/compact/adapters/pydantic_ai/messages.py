"""pydantic-ai's messages as a dialect: each part of a request is an entry, and a response is one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

from compact.core.log.entries import read_entry

try:
    from pydantic_ai.messages import (
        ModelMessagesTypeAdapter,
        ModelRequest,
        ModelResponse,
        SystemPromptPart,
        TextContent,
        ToolReturnPart,
        UserPromptPart,
    )
except ImportError as error:
    hint = 'hint: pip install "compact-context[pydantic-ai]"'
    raise ImportError(f"the pydantic-ai adapter needs the package pydantic-ai-slim\n{hint}") from error

from compact.adapters.pydantic_ai_parts import Data, join_content, join_response, split_content, split_response
from compact.core.log.legality import Violation, check_chat
from compact.dialects.dialect import NATIVE, Block, Entry, foreign, without
from compact.dialects.translation import META

# The key of `metadata` under which a text or a tool's return says what is ours: {"compact": {"protected": True}}.
# Messages have metadata, too, but lose it when the framework merges those that follow each other.
MARK = "compact"
# Where a prompt would begin with the model's own words, which several providers reject.
OPENING = "[earlier parts of this conversation were left out]"

# What we made has no time: the same prompt is the same every time.
_NO_TIME = datetime.fromtimestamp(0, UTC)
_NO_TIME_TEXT = "1970-01-01T00:00:00Z"
# What a response says of itself that its provider may want to see again; ids of what a server keeps are not: it
# would go on from an answer that has another past now.
_OF_RESPONSE = (
    *("model_name", "timestamp", "provider_name", "provider_url", "canonical_system"),
    *("provider_details", "finish_reason", "state"),
)


def protected(text: str) -> TextContent:
    """A text of the user that no compaction will touch: `agent.run([protected("Never …"), "Now do …"])`."""
    return TextContent(text, metadata={MARK: {"protected": True}})


class PydanticAIDialect:
    """`ModelRequest` and `ModelResponse`, whatever model they are for; `flag` is what protects an entry."""

    name = "pydantic_ai"

    def __init__(self, flag: str = "protected") -> None:
        self._flag = flag

    def recognises(self, item: object) -> bool | None:
        """Its messages are nobody else's."""
        return isinstance(item, ModelRequest | ModelResponse)

    def read(self, items: Sequence[Any], place: int) -> Iterator[Block]:
        """A response is one entry; each part of a request is one, results first, as they stand behind their calls."""
        for number, item in enumerate(items, place):
            if isinstance(item, ModelResponse):
                yield Block((item,), (_response_entry(item),))
            elif isinstance(item, ModelRequest):
                yield Block((item,), tuple(self._request_entries(item)))
            else:
                raise foreign(item, number, self.name)

    def write(self, entries: Sequence[Entry]) -> Iterator[Block]:
        """Responses one by one; what lies between them is one request, as the framework itself makes it one."""
        between: list[Entry] = []
        for entry in entries:
            if not _is_said(entry):
                between.append(entry)
                continue
            if between:
                yield Block((_request(between),), tuple(between))
            yield Block((_response(entry),), (entry,))
            between = []
        if between:
            yield Block((_request(between),), tuple(between))

    def join(self, blocks: Sequence[Block]) -> Sequence[Block]:
        """A prompt that begins with the user; results of ours get the name of the tool that was called."""
        joined: list[Block] = []
        names: dict[str, str] = {}
        has_begun = False
        for block in blocks:
            message = block.items[0] if block.items else None
            if isinstance(message, ModelResponse):
                names |= {part.tool_call_id: part.tool_name for part in message.tool_calls}
                if not has_begun:
                    joined.append(Block((ModelRequest([_prompt(OPENING)]),), ()))
            elif isinstance(message, ModelRequest) and _has_nameless(message):
                block = Block((_named(message, names),), block.entries)
            has_begun = has_begun or isinstance(message, ModelResponse) or _speaks(message)
            joined.append(block)
        return joined

    def check(self, items: Sequence[Any]) -> tuple[Violation, ...]:
        """What no provider would take: calls and results that do not pair, nothing said, an answer to nobody."""
        read = read_entry
        entries = [entry for block in self.read(items, 0) for entry in block.entries]
        first = next((entry["role"] for entry in entries if entry["role"] != "system"), "user")
        begins = () if first == "user" else (Violation("first_is_user", 0, f"the first to speak is {first}"),)
        return (*begins, *check_chat([read(entry, f"messages[{place}]") for place, entry in enumerate(entries)]))

    def _request_entries(self, request: ModelRequest) -> list[Entry]:
        (data,) = _dump([request])
        entries = [self._part_entry(part, own) for part, own in zip(data["parts"], request.parts, strict=True)]
        return sorted(entries, key=lambda entry: entry["role"] != "tool")

    def _part_entry(self, part: Data, original: Any) -> Entry:
        kind = part["part_kind"]
        if kind == "system-prompt":
            return _entry("system", part, part["content"])
        if kind == "user-prompt":
            content, layout = split_content(part["content"], is_prompt=True)
            marks = [_mark(item) for item in part["content"] if isinstance(item, Mapping)]
            meta = {key: value for mark in marks for key, value in mark.items()}
            return _entry("user", part, content, layout, meta=meta)
        if kind == "tool-return":
            content, layout = split_content(part["content"], is_prompt=False)
            # What reveals tools to the model is state of the framework: without it, the tools would be gone.
            meta = {**_mark(part), **({self._flag: True} if part.get("tool_kind") else {})}
            return _entry("tool", part, content, layout, call_id=part["tool_call_id"], meta=meta)
        return _other_entry(part, original)


def _entry(
    role: str, part: Data, content: Any, layout: Any = None, *, call_id: str = "", meta: Data | None = None
) -> Entry:
    rest = {key: value for key, value in without(part, "content", "tool_call_id").items() if value is not None}
    native: Data = {"part": rest, **({"layout": layout} if layout else {})}
    of_call = {"tool_call_id": call_id} if call_id else {}
    return {"role": role, "content": content, **of_call, **({META: meta} if meta else {}), NATIVE: native}


def _other_entry(part: Data, original: Any) -> Entry:
    """Parts that the framework writes: what the model reads of them, and the part as a whole."""
    tell = getattr(original, "model_response", None)
    text = str(tell()) if callable(tell) else part.get("content")
    is_read = isinstance(text, str) and bool(text)
    # Notes that the framework writes for itself: entries of the system's role always stay.
    said = text if is_read else f"[{part['part_kind']}]"
    native = {"whole": part, "text": said}
    if part.get("tool_call_id") and part.get("tool_name"):
        return {"role": "tool", "tool_call_id": part["tool_call_id"], "content": said, NATIVE: native}
    return {"role": "user" if is_read else "system", "content": said, NATIVE: native}


def _response_entry(response: ModelResponse) -> Entry:
    (data,) = _dump([response])
    content, calls, layout = split_response(data["parts"])
    kept = {key: data[key] for key in _OF_RESPONSE if data.get(key) is not None}
    return {
        "role": "assistant",
        "content": content,
        **({"tool_calls": calls} if calls else {}),
        NATIVE: {"layout": layout, "data": kept},
    }


def _is_said(entry: Entry) -> bool:
    """True for what the model said; a summary of ours travels in a request, as some providers want it."""
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
    if "part" in native:
        part = {**native["part"], "content": join_content(content, native.get("layout"))}
        return {**part, "tool_call_id": entry["tool_call_id"]} if role == "tool" else part
    text = content if isinstance(content, str) else join_content(content, None)
    if role == "tool":
        name = native.get("whole", {}).get("tool_name", "")
        own = {"part_kind": "tool-return", "tool_name": name, "tool_call_id": entry["tool_call_id"]}
        return {**own, "content": text, "timestamp": _NO_TIME_TEXT}
    kind = "system-prompt" if role in ("system", "developer") else "user-prompt"
    return {"part_kind": kind, "content": text or "", "timestamp": _NO_TIME_TEXT}


def _prompt(text: str) -> UserPromptPart:
    return UserPromptPart(text, timestamp=_NO_TIME)


def _speaks(message: object) -> bool:
    parts = message.parts if isinstance(message, ModelRequest) else ()
    return any(not isinstance(part, SystemPromptPart) for part in parts)


def _has_nameless(message: ModelRequest) -> bool:
    return any(isinstance(part, ToolReturnPart) and not part.tool_name for part in message.parts)


def _named(message: ModelRequest, names: Mapping[str, str]) -> ModelRequest:
    parts = [
        replace(part, tool_name=names.get(part.tool_call_id, "tool"))
        if isinstance(part, ToolReturnPart) and not part.tool_name
        else part
        for part in message.parts
    ]
    return replace(message, parts=parts)


def _mark(data: Mapping[str, Any]) -> Data:
    metadata = data.get("metadata")
    mark = metadata.get(MARK) if isinstance(metadata, Mapping) else None
    return dict(mark) if isinstance(mark, Mapping) else {}


def _dump(messages: list[Any]) -> list[Data]:
    return ModelMessagesTypeAdapter.dump_python(messages, mode="json")


def _load(data: Data) -> ModelRequest | ModelResponse:
    return ModelMessagesTypeAdapter.validate_python([data])[0]
