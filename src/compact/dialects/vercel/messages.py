"""Messages of the Vercel AI SDK as entries, and entries as messages.

An assistant's message is one entry, a message of results one for each. Reasoning, the work of tools that the provider
runs, and requests for approval are opaque. One list may go to any provider, so the rules of the strictest hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from compact.core.json_data import is_list, is_mapping
from compact.core.messages.legality import Violation
from compact.dialects.dialect import (
    NATIVE,
    Block,
    Entry,
    foreign,
    from_json,
    is_summary,
    native_of,
    to_json,
    with_words,
    without,
)
from compact.dialects.turns import (
    CALL as CALL_PIECE,
)
from compact.dialects.turns import (
    EMPTY_CONTENT,
    OPAQUE,
    OPAQUE_BLOCK,
    OPENING,
    ORDER,
    PART,
    TurnPiece,
    arrange,
    assistant_entry,
    read_calls,
)
from compact.dialects.vercel.check import check_vercel
from compact.dialects.vercel.parts import (
    CALL,
    FORM,
    REQUEST,
    RESPONSE,
    RESULT,
    Part,
    id_of,
    is_own_result,
    kind_of,
    read_call,
    read_result,
    write_call_part,
    write_result,
)

_EMPTY = {"content": EMPTY_CONTENT}
_ROLES = ("system", "user", "assistant", "tool")
_OWN_PARTS = frozenset({CALL, RESULT, REQUEST, RESPONSE, "reasoning", "reasoning-file", "redacted-reasoning"})
_OWN_KEYS = frozenset({"providerOptions", "experimental_providerMetadata"})
_FOREIGN_PARTS = frozenset(
    {"image_url", "input_audio", "refusal", "input_text", "output_text", "input_image", "input_file"}
    | {"tool_use", "tool_result", "thinking", "redacted_thinking"}
)
_FOREIGN_KEYS = frozenset({"tool_calls", "tool_call_id", "parts", "type", "function_call"})
# What stands in the content of an assistant's message.
_CONTENT_PARTS = frozenset({"text", "file", "image"})
# Under these names an entry keeps the other fields of its message, that it is not the first part of one, an approval
# without a result, and the approvals that came with a result.
_ITEM, _CONTINUES, _APPROVAL, _APPROVALS = "item", "continues", "approval", "approvals"


class VercelDialect:
    """Messages as `generateText({ messages })` of the AI SDK takes them, of version 4 and later."""

    name = "vercel"

    def recognises(self, item: object) -> bool | None:
        """Return True for parts that nobody else has, None for plain text, which anybody may have."""
        if not is_mapping(item) or item.get("role") not in _ROLES or _FOREIGN_KEYS & item.keys():
            return False
        content: Any = item.get("content")
        if isinstance(content, str):
            return False if item["role"] == "tool" else True if _OWN_KEYS & item.keys() else None
        if not is_list(content) or any(not kind_of(part) or kind_of(part) in _FOREIGN_PARTS for part in content):
            return False
        if any(map(_is_own, content)) or _OWN_KEYS & item.keys():
            return True
        return False if any(kind_of(part) in ("image", "file", "document") for part in content) else None

    def read(self, items: Sequence[Any], place: int) -> Iterator[Block]:
        """Yield a block for each message; one that asks for approval is read with the answers behind it."""
        start = 0
        while start < len(items):
            for number in (start, *range(start + 1, _end_of_approval(items, start))):
                if self.recognises(items[number]) is False:
                    raise foreign(items[number], place + number, self.name)
            end = _end_of_approval(items, start)
            yield Block(tuple(items[start:end]), tuple(_read_messages(items[start:end])))
            start = end

    def write(self, entries: Sequence[Entry]) -> Iterator[Block]:
        """Yield a message for each entry; `join` puts the results of one message together."""
        for entry in entries:
            yield Block(tuple(_write_messages(entry)), (entry,))

    def join(self, blocks: Sequence[Block]) -> Sequence[Block]:
        """Have the user begin, results of one message together, and no instruction of ours behind the beginning."""
        names = {call.id: call.name for block in blocks for entry in block.entries for call in read_calls(entry)}
        joined: list[Block] = []
        has_begun = False
        for block in (_with_words(_with_tool_name(block, names)) for block in blocks):
            role = block.items[0]["role"] if block.items else ""
            if not has_begun and role not in ("system", ""):
                has_begun = True
                if role != "user":
                    joined.append(Block(({"role": "user", "content": OPENING},), ()))
            if has_begun and role == "system" and not any(native_of(entry) for entry in block.entries):
                joined.append(Block(({"role": "user", "content": block.items[0]["content"]},), block.entries))
            elif joined and _continues(joined[-1], block):
                joined[-1] = _merged(joined[-1], block)
            else:
                joined.append(block)
        return joined

    def check(self, items: Sequence[Any]) -> tuple[Violation, ...]:
        """Return everything the SDK, or a provider behind it, would reject."""
        return check_vercel(items)


def _is_own(part: Mapping[str, Any]) -> bool:
    kind = kind_of(part)
    has_media_type = "mediaType" in part or "mimeType" in part
    own_media = (kind == "image" and "image" in part) or (kind == "file" and has_media_type and "data" in part)
    return kind in _OWN_PARTS or own_media or "providerOptions" in part


# -- messages to entries ----------------------------------------------------------------------------------------------


def _parts_of(item: object) -> Sequence[Any]:
    content = item.get("content") if is_mapping(item) else None
    return content if is_list(content) else ()


def _role_of(item: object) -> str:
    return str(item.get("role")) if is_mapping(item) else ""


def _end_of_approval(items: Sequence[Any], start: int) -> int:
    """Return where the answers end of a message that asks for approval; the next place for all other messages."""
    end = start + 1
    if _role_of(items[start]) == "assistant" and any(kind_of(part) == REQUEST for part in _parts_of(items[start])):
        while end < len(items) and _role_of(items[end]) == "tool":
            end += 1
    return end


def _read_messages(items: Sequence[Mapping[str, Any]]) -> Iterator[Entry]:
    first, *answers = items
    if first["role"] != "tool":
        yield _read_message(first)
    else:
        answers = items
    calls = {part.get("approvalId"): id_of(part) for part in _parts_of(first) if kind_of(part) == REQUEST}
    results = {id_of(part) for item in answers for part in _parts_of(item) if kind_of(part) == RESULT}
    waiting: dict[str, list[Part]] = {}
    for item in answers:
        has_begun = False
        for part in _parts_of(item):
            call_id = calls.get(part.get("approvalId"), "") if kind_of(part) == RESPONSE else ""
            if call_id in results:
                waiting.setdefault(call_id, []).append({"part": to_json(part), "with": id(item)})
                continue
            entry = _read_answer(part, call_id)
            entry[NATIVE] |= _native(item) if not has_begun else {_CONTINUES: True}
            _add_approvals(entry, waiting.pop(entry.get("tool_call_id", ""), []), id(item))
            yield entry
            has_begun = True


def _read_answer(part: Any, call_id: str) -> Entry:
    if kind_of(part) == RESULT:
        return read_result(part)
    if call_id:
        # The call has been decided on, and is run by the SDK: that is all there is of a result so far.
        return {"role": "tool", "tool_call_id": call_id, "content": [to_json(part)], NATIVE: {_APPROVAL: to_json(part)}}
    return {"role": "user", "content": [to_json(part)], NATIVE: {"role": "tool"}}


def _add_approvals(entry: Entry, approvals: Sequence[Part], message: int) -> None:
    if approvals:
        is_apart = any(one["with"] != message for one in approvals)
        entry[NATIVE][_APPROVALS] = {"parts": [one["part"] for one in approvals], "is_apart": is_apart}


def _native(item: Mapping[str, Any]) -> dict[str, Any]:
    rest = to_json(without(item, "role", "content"))
    return {_ITEM: rest} if rest else {}


def _read_message(item: Mapping[str, Any]) -> Entry:
    role, content, native = item["role"], item["content"], _native(item)
    if role == "system":
        native["role"] = role  # unlike the instructions that others add to a prompt
    if role == "assistant" and not isinstance(content, str):
        return _read_assistant(content, native)
    if not native and isinstance(content, str):
        return dict(item)
    parts: Any = content if isinstance(content, str) else [to_json(part) for part in content]
    return {"role": role, "content": parts, **({NATIVE: native} if native else {})}


def _read_assistant(content: Sequence[Any], native: dict[str, Any]) -> Entry:
    answered = {id_of(part) for part in content if kind_of(part) == RESULT}
    pieces: list[TurnPiece] = []
    extras: list[Any] = []
    for part in content:
        is_own_call = kind_of(part) == CALL and not part.get("providerExecuted") and id_of(part) not in answered
        if is_own_call:
            call, extra = read_call(part)
            pieces.append(TurnPiece(CALL_PIECE, call))
            extras.append(extra)
        else:
            pieces.append(TurnPiece(PART if kind_of(part) in _CONTENT_PARTS else OPAQUE_BLOCK, to_json(part)))
    if any(extras):
        native["calls"] = extras
    return assistant_entry(pieces, native)


# -- entries to messages ----------------------------------------------------------------------------------------------


def _write_messages(entry: Entry) -> Iterator[dict[str, Any]]:
    native, content = native_of(entry), from_json(entry.get("content"))
    rest = from_json(native.get(_ITEM, {}))
    role = entry["role"]
    if role == "tool":
        yield from _write_tool(entry, rest)
    elif role == "assistant" and not is_summary(entry) and FORM not in native and _APPROVAL not in native:
        yield {"role": "assistant", "content": _write_assistant(entry, content), **rest}
    elif role in ("system", "developer"):
        yield {"role": "system", "content": content or EMPTY_CONTENT, **rest}
    elif native.get("role") == "tool" and is_list(content):
        yield {"role": "tool", "content": content, **rest}
    else:
        # A result whose call is gone is said by the user, and so is the summary: the first message is the user's.
        own: dict[str, Any] = rest if role == "user" else {}
        yield {"role": "user", "content": content or EMPTY_CONTENT, **own}


def _write_tool(entry: Entry, rest: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    native = native_of(entry)
    if _APPROVAL in native:
        yield {"role": "tool", "content": [from_json(native[_APPROVAL])], **rest}
        return
    approvals = from_json(native.get(_APPROVALS, {}))
    parts: list[Any] = approvals.get("parts", [])
    result = write_result(entry)
    if approvals.get("is_apart"):
        yield {"role": "tool", "content": parts}
        parts = []
    yield {"role": "tool", "content": [*parts, result], **rest}


def _write_assistant(entry: Entry, content: Any) -> Any:
    native = native_of(entry)
    calls = list(read_calls(entry))
    nothing: dict[str, Any] = {}
    if isinstance(content, str) and not calls and not native.keys() - {_ITEM}:
        return content or EMPTY_CONTENT
    extras: Sequence[Any] = native.get("calls") or [nothing] * len(calls)
    uses = [write_call_part(call, extra) for call, extra in zip(calls, extras, strict=True)]
    parts: Sequence[Any] = [{"type": "text", "text": content}] if isinstance(content, str) and content else content
    arranged = arrange(native.get(ORDER, ""), parts or (), uses, from_json(native.get(OPAQUE, [])))
    return arranged or [{"type": "text", "text": EMPTY_CONTENT}]


def _with_words(block: Block) -> Block:
    """Return the block without texts that say nothing; what is in a message of results is never a text alone."""
    return block if any(item["role"] == "tool" for item in block.items) else with_words(block, _EMPTY)


def _with_tool_name(block: Block, names: Mapping[str, str]) -> Block:
    """Return the block of a result that was made up with the name of the tool that was called."""
    entry = block.entries[0] if len(block.entries) == 1 else {}
    if entry.get("role") != "tool" or is_own_result(entry) or _APPROVAL in native_of(entry):
        return block
    part = write_result(entry, names.get(entry["tool_call_id"], ""))
    return Block(({"role": "tool", "content": [part]},), block.entries)


def _continues(first: Block, second: Block) -> bool:
    """Return True for a result that stood in one message with the one before it."""
    is_part = bool(second.entries) and bool(native_of(second.entries[0]).get(_CONTINUES))
    return is_part and bool(first.items) and first.items[-1]["role"] == "tool" == second.items[0]["role"]


def _merged(first: Block, second: Block) -> Block:
    one, two = first.items[-1], second.items[0]
    message = {**two, **one, "content": [*one["content"], *two["content"]]}
    return Block((*first.items[:-1], message, *second.items[1:]), (*first.entries, *second.entries))
