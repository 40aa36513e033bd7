"""Messages of Converse as entries, and entries as messages.

An assistant's message is one entry; a user's is one for each result, and one for the rest. A mark of the cache behind a
result belongs to that result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from compact.core.json_data import is_list, is_mapping
from compact.core.messages.legality import Violation
from compact.dialects.converse.blocks import (
    BLOCKS,
    CALL,
    CONTENT_BLOCKS,
    MARK,
    REASONING,
    RESULT,
    WireBlock,
    blocks_of,
    content_of,
    is_call,
    to_block,
    to_part,
)
from compact.dialects.converse.check import check_converse
from compact.dialects.dialect import (
    META,
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
    FunctionCall,
    TurnPiece,
    arrange,
    assistant_entry,
    read_calls,
    read_object,
    write_call,
    write_json,
)

_ROLES = ("user", "assistant")
_EMPTY = {"content": [{"text": EMPTY_CONTENT}]}
# Under these names an entry keeps the other fields of its message, those of its result, and marks of the cache.
_ITEM, _RESULT, _MARKS = "item", "result", "marks"


class ConverseDialect:
    """Messages as boto3's `client.converse(messages=...)` takes them."""

    name: str = "converse"
    # Fields of a message that never leave the process; and what a result has that we made up.
    _local_keys: ClassVar[tuple[str, ...]] = ()
    _result_fields: ClassVar[Mapping[str, Any]] = {}

    def recognises(self, item: object) -> bool | None:
        """Return True for a message whose content is a list of blocks with one key each, and no `type`."""
        if not is_mapping(item) or item.get("role") not in _ROLES or "type" in item or "tool_calls" in item:
            return False
        content: Any = item.get("content")
        if not is_list(content) or any(not is_mapping(block) or "type" in block for block in content):
            return False
        return True if any(BLOCKS & block.keys() for block in content) else None

    def read(self, items: Sequence[Any], place: int) -> Iterator[Block]:
        """Yield a block for each message."""
        for number, item in enumerate(items, place):
            if self.recognises(item) is False:
                hint = 'content is a list of blocks, as in [{"text": "hello"}]; system prompts go into instructions='
                raise foreign(item, number, self.name, hint=hint)
            read = self._read_assistant(item) if item["role"] == "assistant" else self._read_user(item)
            yield Block((item,), tuple(read))

    def write(self, entries: Sequence[Entry]) -> Iterator[Block]:
        """Yield a message for each entry; `join` puts together what belongs together."""
        for entry in entries:
            role, content = self._write_message(entry)
            fields = from_json(native_of(entry).get(_ITEM, {}))
            yield Block(({"role": role, "content": content, **fields},), (entry,))

    def join(self, blocks: Sequence[Block]) -> Sequence[Block]:
        """Have roles alternate and the user begin: neighbours of one role are merged."""
        joined: list[Block] = []
        for block in (with_words(block, _EMPTY) for block in blocks):
            if joined and _role(joined[-1]) == _role(block):
                joined[-1] = self._merged(joined[-1], block)
            else:
                joined.append(block)
        if joined and _role(joined[0]) == "assistant":
            joined.insert(0, Block(({"role": "user", "content": [{"text": OPENING}]},), ()))
        return joined

    def check(self, items: Sequence[Any]) -> tuple[Violation, ...]:
        """Return everything Converse would reject."""
        return check_converse(items, local_keys=self._local_keys)

    # -- messages to entries ------------------------------------------------------------------------------------------

    def _meta(self, item: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the caller has marked a message with: nothing but what the translation knows."""
        return {}

    def _native(self, item: Mapping[str, Any]) -> dict[str, Any]:
        fields = to_json(without(item, "role", "content", *self._local_keys))
        return {_ITEM: fields} if fields else {}

    def _with_meta(self, entry: Entry, item: Mapping[str, Any]) -> Entry:
        meta = self._meta(item)
        return {**entry, META: meta} if meta else entry

    def _read_assistant(self, item: Mapping[str, Any]) -> Iterator[Entry]:
        pieces: list[TurnPiece] = []
        extras: list[Any] = []
        for block in item["content"]:
            if is_call(block):
                use = block[CALL]
                arguments = write_json(to_json(use.get("input")))
                call = FunctionCall(use.get("toolUseId", ""), use.get("name", ""), arguments)
                pieces.append(TurnPiece(CALL_PIECE, write_call(call)))
                extras.append(to_json(without(use, "toolUseId", "name", "input")))
            else:
                kind = PART if CONTENT_BLOCKS & block.keys() else OPAQUE_BLOCK
                pieces.append(TurnPiece(kind, to_part(block)))
        native = self._native(item)
        if any(extras):
            native["calls"] = extras
        yield self._with_meta(assistant_entry(pieces, native), item)

    def _read_user(self, item: Mapping[str, Any]) -> Iterator[Entry]:
        results: list[tuple[Mapping[str, Any], list[WireBlock]]] = []
        others: list[WireBlock] = []
        for block in item["content"]:
            if RESULT in block:
                results.append((block[RESULT], []))
            elif MARK in block and results and not others:
                results[-1][1].append(block)
            else:
                others.append(block)
        native = self._native(item)
        for number, (result, marks) in enumerate(results, 1):
            is_last = number == len(results) and not others
            yield self._with_meta(_read_result(result, marks, native if is_last else {}), item)
        if others or not results:
            marks = [block for block in others if MARK in block]
            native |= {_MARKS: to_json(marks)} if marks else {}
            entry: Entry = {"role": "user", "content": content_of(others)}
            yield self._with_meta({**entry, NATIVE: native} if native else entry, item)

    # -- entries to messages ------------------------------------------------------------------------------------------

    def _write_message(self, entry: Entry) -> tuple[str, list[WireBlock]]:
        native, content = native_of(entry), entry.get("content")
        if entry["role"] == "tool":
            return "user", self._write_result(entry)
        parts = blocks_of(content)
        # A result whose call is gone is said by the user, and so is the summary: the first message is the user's.
        if entry["role"] != "assistant" or is_summary(entry) or _RESULT in native:
            is_replaced = isinstance(content, str) and _RESULT not in native
            marks: list[WireBlock] = from_json(native[_MARKS]) if is_replaced and _MARKS in native else []
            return "user", _with_words([*parts, *marks])
        nothing: dict[str, Any] = {}
        extras: Sequence[Any] = native.get("calls") or [nothing] * len(entry.get("tool_calls") or ())
        calls = [_write_use(call, extra) for call, extra in zip(read_calls(entry), extras, strict=True)]
        opaque = [to_block(part) for part in native.get(OPAQUE, ())]
        return "assistant", _with_words(arrange(native.get(ORDER, ""), parts, calls, opaque))

    def _write_result(self, entry: Entry) -> list[WireBlock]:
        native, content = native_of(entry), blocks_of(entry.get("content"))
        fields = from_json(native.get(_RESULT, self._result_fields))
        if not content and fields.get("status") == "error":
            content = [{"text": EMPTY_CONTENT}]
        result = {"toolUseId": entry["tool_call_id"], "content": content, **fields}
        return [{RESULT: result}, *from_json(native.get(_MARKS, []))]

    def _merged(self, first: Block, second: Block) -> Block:
        one, two = first.items[-1], second.items[0]
        content: list[WireBlock] = [*one["content"], *two["content"]]
        if one["role"] == "assistant":  # reasoning must come first, or its provider rejects it
            content.sort(key=lambda block: REASONING not in block)
        else:
            content = _results_first(content)
        fields = {**without(two, *self._local_keys), **without(one, *self._local_keys)}
        message = {**fields, "role": one["role"], "content": content}
        return Block((*first.items[:-1], message, *second.items[1:]), (*first.entries, *second.entries))


def _role(block: Block) -> str:
    return block.items[-1]["role"]


def _read_result(result: Mapping[str, Any], marks: Sequence[WireBlock], native: Mapping[str, Any]) -> Entry:
    content = content_of(result.get("content") or [])
    own = {
        **native,
        _RESULT: to_json(without(result, "toolUseId", "content")),
        **({_MARKS: to_json(list(marks))} if marks else {}),
    }
    return {"role": "tool", "tool_call_id": result.get("toolUseId", ""), "content": content or "", NATIVE: own}


def _write_use(call: FunctionCall, extra: Mapping[str, Any]) -> WireBlock:
    arguments = from_json(read_object(call.arguments))
    return {CALL: {"toolUseId": call.id, "name": call.name, "input": arguments, **from_json(extra)}}


def _with_words(blocks: list[WireBlock]) -> list[WireBlock]:
    """Return the blocks of a message that says something: marks of the cache and reasoning alone do not."""
    if any(not {MARK, REASONING} & block.keys() for block in blocks):
        return blocks
    at = next((place for place, block in enumerate(blocks) if MARK in block), len(blocks))
    return [*blocks[:at], {"text": EMPTY_CONTENT}, *blocks[at:]]


def _results_first(blocks: Sequence[WireBlock]) -> list[WireBlock]:
    """Return blocks with results, and the marks right behind them, before all others."""
    first: list[WireBlock] = []
    others: list[WireBlock] = []
    is_behind_result = False
    for block in blocks:
        is_behind_result = RESULT in block or (MARK in block and is_behind_result)
        (first if is_behind_result else others).append(block)
    return [*first, *others]
