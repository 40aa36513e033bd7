"""The messages of Strands, which are those of Bedrock's Converse, as a dialect: two roles, results in user messages."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from compact.adapters.support import call_positions, insert_calls
from compact.core.json_data import is_list, is_mapping
from compact.core.log.legality import Violation
from compact.dialects.dialect import NATIVE, Block, Entry, foreign, without
from compact.dialects.translation import META
from compact.dialects.turns import OPENING

Part: TypeAlias = dict[str, Any]
WireBlock: TypeAlias = dict[str, Any]

# Strands removes these before a request leaves; ids and metrics are not the same after a restart.
_LOCAL_KEYS = ("tracking_id", "metadata")
_MESSAGE_KEYS = frozenset({"role", "content", *_LOCAL_KEYS})
_BYTES = "$bytes"  # the key under which bytes stand in JSON


@dataclass(frozen=True, slots=True)
class StrandsDialect:
    """Reads and writes `strands.types.content.Message`.

    The plugin uses it by itself; name it where you call the manager with such messages.

    Args:
        protected_flag: The key in `metadata.custom` that protects a message.
        name: The name of the dialect in events and errors.

    Example:
        >>> from compact import CompactManager
        >>> from compact.adapters.strands import StrandsDialect
        >>> messages = [{"role": "user", "content": [{"text": "Hello"}]}]
        >>> CompactManager().preflight("chat-1", messages, dialect=StrandsDialect()) == messages
        True
    """

    protected_flag: str = "protected"
    name: str = "strands"

    def recognises(self, item: object) -> bool | None:
        """Return True for a message whose content is a list of blocks with one key each, and no `type`."""
        if not is_mapping(item) or item.get("role") not in ("user", "assistant"):
            return False
        content: Any = item.get("content")
        if not isinstance(content, list):
            return False
        content = cast(list[Any], content)
        return all(is_mapping(block) and "type" not in block for block in content) if content else None

    def read(self, items: Sequence[Any], place: int) -> Iterator[Block]:
        """Yield a block for each message: an assistant's is one entry, a user's one for each result and the rest."""
        for number, item in enumerate(items, place):
            if self.recognises(item) is False:
                raise foreign(item, number, self.name)
            entries = self._assistant_entry(item) if item["role"] == "assistant" else self._user_entries(item)
            yield Block((item,), tuple(entries))

    def _assistant_entry(self, item: Mapping[str, Any]) -> Iterator[Entry]:
        blocks: list[WireBlock] = item["content"]
        uses = [block for block in blocks if "toolUse" in block]
        native = {"message": _message_fields(item), **call_positions(blocks, uses)}
        content = content_of([block for block in blocks if "toolUse" not in block])
        calls = {"tool_calls": [call_of(block["toolUse"]) for block in uses]} if uses else {}
        yield {"role": "assistant", "content": content, **calls, NATIVE: native, **self._meta(item)}

    def _user_entries(self, item: Mapping[str, Any]) -> Iterator[Entry]:
        blocks: list[WireBlock] = item["content"]
        fields = _message_fields(item)
        results = [block["toolResult"] for block in blocks if "toolResult" in block]
        for number, result in enumerate(results):
            native = {"message": fields if number == 0 else {}, **to_json(without(result, "toolUseId", "content"))}
            answer = content_of(result.get("content") or [])
            yield {
                "role": "tool",
                "tool_call_id": result.get("toolUseId", ""),
                "content": "" if answer is None else answer,
                NATIVE: native if answer is not None else {**native, "is_empty": True},
                **self._meta(item),
            }
        content = content_of([block for block in blocks if "toolResult" not in block])
        if content is not None or not results:
            native = {"message": {} if results else fields}
            yield {"role": "user", "content": content, NATIVE: native, **self._meta(item)}

    def _meta(self, item: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the user has put into the metadata; a message that Strands has pinned is protected here, too."""
        metadata: Mapping[str, Any] = item.get("metadata") or {}
        custom = metadata.get("custom")
        meta = dict(custom) if is_mapping(custom) else {}
        if meta.get("pinned") is True:
            meta[self.protected_flag] = True
        return {META: meta} if meta else {}

    def write(self, entries: Sequence[Entry]) -> Iterator[Block]:
        """Yield a message for each entry; what belongs together is merged when the whole prompt is joined."""
        for entry in entries:
            yield Block((_message(entry),), (entry,))

    def join(self, blocks: Sequence[Block]) -> Sequence[Block]:
        """Have roles alternate and the user begin: neighbours of one role are merged."""
        joined: list[Block] = []
        for block in blocks:
            if joined and block.items and _role(joined[-1]) == _role(block):
                joined[-1] = _merged(joined[-1], block)
            else:
                joined.append(block)
        if joined and _role(joined[0]) == "assistant":
            joined.insert(0, Block(({"role": "user", "content": [{"text": OPENING}]},), ()))
        return joined

    def check(self, items: Sequence[Any]) -> tuple[Violation, ...]:
        """Return what Converse would reject."""
        return tuple(_violations(items))


def _message_fields(item: Mapping[str, Any]) -> dict[str, Any]:
    return to_json(without(item, "role", "content", *_LOCAL_KEYS))


# -- entries to messages ----------------------------------------------------------------------------------------------


def _message(entry: Entry) -> dict[str, Any]:
    native = from_json(entry.get(NATIVE) or {})
    fields = native.pop("message", {})
    blocks = blocks_of(entry.get("content"))
    if entry["role"] == "tool":
        content = [] if native.pop("is_empty", False) and not entry.get("content") else blocks
        result = {"toolUseId": entry.get("tool_call_id"), "content": content, **native}
        return {"role": "user", "content": [{"toolResult": {"status": "success", **result}}], **fields}
    is_ours = NATIVE not in entry and not entry.get("tool_calls")
    if entry["role"] != "assistant" or is_ours:
        # A summary is a user message: before it there may be nothing, behind it an open tool loop.
        return {"role": "user", "content": blocks, **fields}
    uses = [use_of(call) for call in entry.get("tool_calls") or ()]
    return {"role": "assistant", "content": insert_calls(blocks, uses, native), **fields}


def _role(block: Block) -> str:
    return block.items[-1]["role"]


def _merged(first: Block, second: Block) -> Block:
    one, two = first.items[-1], second.items[0]
    content: list[WireBlock] = [*one["content"], *two["content"]]
    if one["role"] == "assistant":  # reasoning must come first, or its provider rejects it
        content.sort(key=lambda block: "reasoningContent" not in block)
    elif one["content"]:  # results must come first, too
        content.sort(key=lambda block: "toolResult" not in block)
    fields = {**without(two, *_LOCAL_KEYS), **without(one, *_LOCAL_KEYS)}
    message = {**fields, "role": one["role"], "content": content}
    return Block((*first.items[:-1], message, *second.items[1:]), (*first.entries, *second.entries))


# -- what Converse rejects --------------------------------------------------------------------------------------------


def _violations(items: Sequence[Any]) -> Iterator[Violation]:
    open_calls: list[str] = []
    before = ""
    for place, item in enumerate(items):
        role, content = item.get("role"), item.get("content")
        yield from (Violation("unknown_key", place, f"a message has no {key!r}") for key in set(item) - _MESSAGE_KEYS)
        if role == before or (not before and role != "user"):
            yield Violation("roles_alternate", place, f"{role} after {before or 'nothing'}")
        if not content:
            yield Violation("empty_content", place, f"a {role} message without content")
        blocks: Sequence[WireBlock] = content or ()
        before = role
        yield from _bad_blocks(blocks, role, place)
        answered = [block["toolResult"].get("toolUseId") for block in blocks if "toolResult" in block]
        yield from _unpaired(open_calls, answered, place)
        open_calls = [block["toolUse"].get("toolUseId") for block in blocks if "toolUse" in block]
        if len(set(open_calls)) != len(open_calls):
            yield Violation("duplicate_call_id", place, "two calls of one message share an id")
    yield from _unpaired(open_calls, [], len(items))


def _unpaired(calls: Sequence[str], answers: Sequence[str], place: int) -> Iterator[Violation]:
    for call in calls:
        if answers.count(call) != 1:
            yield Violation("call_without_result", place - 1, f"{answers.count(call)} results for the call {call!r}")
    for answer in answers:
        if answer not in calls:
            yield Violation("result_without_call", place, f"the message before has no call {answer!r}")


def _bad_blocks(blocks: Sequence[WireBlock], role: str, place: int) -> Iterator[Violation]:
    misplaced = {"assistant": ("toolResult",), "user": ("toolUse", "reasoningContent")}.get(role, ())
    for block in blocks:
        if "text" in block and not str(block["text"]).strip():
            yield Violation("empty_content", place, "a text block without text")
        yield from (
            Violation("wrong_role", place, f"{kind} in a {role} message") for kind in misplaced if kind in block
        )
    is_result = ["toolResult" in block for block in blocks]
    if is_result != sorted(is_result, reverse=True):
        yield Violation("result_not_first", place, "results stand first in their message")
    kinds = {kind for block in blocks for kind in block}
    if {"toolUse", "reasoningContent"} <= kinds and "reasoningContent" not in blocks[0]:
        yield Violation("reasoning_not_first", place, "a message with reasoning and calls begins with the reasoning")


# -- content blocks as parts of an entry, and parts as blocks again ---------------------------------------------------


def content_of(blocks: Sequence[WireBlock]) -> str | list[Part] | None:
    """Return blocks as the content of an entry: one plain text as it is, nothing as None."""
    parts = [to_part(block) for block in blocks]
    if len(parts) == 1 and set(parts[0]) == {"type", "text"}:
        return parts[0]["text"]
    return parts or None


def blocks_of(content: object) -> list[WireBlock]:
    """Return the content of an entry as blocks, whoever wrote it."""
    if content is None:
        return []
    if isinstance(content, str):
        return [{"text": content}]
    return [to_block(part) for part in (content if is_list(content) else [content])]


def to_part(block: WireBlock) -> Part:
    """Return one block as a part: what the model reads as text, the rest so that it can be stored as JSON."""
    if isinstance(text := block.get("text"), str):
        return _with_native({"type": "text", "text": text}, without(block, "text"))
    kind = next(iter(block), "")
    write = _PARTS.get(kind) if len(block) == 1 else None
    part = write(block[kind]) if write and is_mapping(block[kind]) else None
    return part or _json_part(block) or {"type": "block", "block": to_json(block)}


def to_block(part: object) -> WireBlock:
    """Return one part as a block; parts that another dialect made become text."""
    if not is_mapping(part):
        return {"text": str(part)}
    read = _BLOCKS.get(str(part.get("type")))
    if read:
        return read(part)
    return {"text": part["text"]} if isinstance(part.get("text"), str) else {"text": json.dumps(part, default=str)}


def to_json(value: Any) -> Any:
    """Return data in which bytes are written as base64, so that a store can keep it."""
    if isinstance(value, bytes | bytearray):
        return {_BYTES: base64.b64encode(value).decode()}
    if is_mapping(value):
        return {key: to_json(item) for key, item in value.items()}
    return [to_json(item) for item in value] if is_list(value) else value


def from_json(value: Any) -> Any:
    """Return the data that `to_json` was given."""
    if is_mapping(value):
        if set(value) == {_BYTES}:
            return base64.b64decode(value[_BYTES])
        return {key: from_json(item) for key, item in value.items()}
    return [from_json(item) for item in value] if is_list(value) else value


def _with_native(part: Part, native: Mapping[str, Any]) -> Part:
    return {**part, NATIVE: to_json(native)} if native else part


def _native(part: Mapping[str, Any]) -> dict[str, Any]:
    return from_json(part.get(NATIVE) or {})


def _json_part(block: WireBlock) -> Part | None:
    """Return data of a tool as text, which it is to the model."""
    if set(block) != {"json"}:
        return None
    return {"type": "text", "text": json.dumps(block["json"], ensure_ascii=False), NATIVE: {"is_json": True}}


def _text_block(part: Mapping[str, Any]) -> WireBlock:
    native = _native(part)
    if native.pop("is_json", False):
        try:
            return {"json": json.loads(part["text"])}
        except (ValueError, RecursionError):  # it was cut: no data any more, but still a text
            return {"text": part["text"]}
    return {"text": part["text"], **native}


def _thinking_part(reasoning: Mapping[str, Any]) -> Part | None:
    """Return reasoning as Anthropic writes it, which is how it is counted."""
    text, redacted = reasoning.get("reasoningText"), reasoning.get("redactedContent")
    if set(reasoning) == {"redactedContent"} and isinstance(redacted, bytes):
        return {"type": "redacted_thinking", "data": base64.b64encode(redacted).decode()}
    if set(reasoning) != {"reasoningText"} or not is_mapping(text) or not isinstance(text.get("text"), str):
        return None
    return {"type": "thinking", "thinking": text["text"], **without(text, "text")}


def _thinking_block(part: Mapping[str, Any]) -> WireBlock:
    rest = without(part, "type", "thinking")
    return {"reasoningContent": {"reasoningText": {"text": part["thinking"], **rest}}}


def _redacted_block(part: Mapping[str, Any]) -> WireBlock:
    return {"reasoningContent": {"redactedContent": base64.b64decode(part["data"])}}


def _image_part(image: Mapping[str, Any]) -> Part | None:
    source = image.get("source")
    if not is_mapping(source) or not isinstance(source.get("bytes"), bytes):
        return None
    data = base64.b64encode(source["bytes"]).decode()
    return _with_native({"type": "image", "source": {"data": data}}, without(image, "source"))


def _image_block(part: Mapping[str, Any]) -> WireBlock:
    return {"image": {**_native(part), "source": {"bytes": base64.b64decode(part["source"]["data"])}}}


def _cited_part(cited: Mapping[str, Any]) -> Part | None:
    """Return an answer with citations; its text is among the parts, where it can be read and searched."""
    return _with_native(
        {"type": "citationsContent", "content": to_json(cited.get("content"))}, without(cited, "content")
    )


def _cited_block(part: Mapping[str, Any]) -> WireBlock:
    return {"citationsContent": {**_native(part), "content": from_json(part["content"])}}


def _any_block(part: Mapping[str, Any]) -> WireBlock:
    return from_json(part["block"])


_PARTS: Mapping[str, Callable[[Mapping[str, Any]], Part | None]] = {
    "reasoningContent": _thinking_part,
    "image": _image_part,
    "citationsContent": _cited_part,
}
_BLOCKS: Mapping[str, Callable[[Mapping[str, Any]], WireBlock]] = {
    "text": _text_block,
    "thinking": _thinking_block,
    "redacted_thinking": _redacted_block,
    "image": _image_block,
    "citationsContent": _cited_block,
    "block": _any_block,
}


def call_of(use: Mapping[str, Any]) -> Entry:
    """Return a `toolUse` as a tool call."""
    call: Entry = {
        "id": use.get("toolUseId", ""),
        "type": "function",
        "function": {"name": use.get("name", ""), "arguments": json.dumps(use.get("input"), ensure_ascii=False)},
    }
    return _with_native(call, without(use, "toolUseId", "name", "input"))


def use_of(call: Mapping[str, Any]) -> WireBlock:
    """Return a tool call as a `toolUse`."""
    function = call["function"]
    try:
        arguments = json.loads(function["arguments"] or "{}")
    except (ValueError, RecursionError):
        arguments = {"arguments": function["arguments"]}
    return {"toolUse": {"toolUseId": call["id"], "name": function["name"], "input": arguments, **_native(call)}}
