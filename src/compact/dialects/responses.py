"""OpenAI Responses: a flat list of items, where reasoning and calls are items of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from compact.core.messages.legality import Violation
from compact.core.messages.message import Message
from compact.dialects.dialect import NATIVE, Block, Entry, as_json_data, check_calls, foreign, native_of, without
from compact.dialects.responses_check import check_responses as check_responses
from compact.dialects.responses_items import (
    ITEM_TYPES,
    Item,
    call_id_of,
    is_call,
    is_output,
    is_reference,
    read_output,
    read_run,
    read_run_with_references,
    write_output,
    write_run,
)

_ROLES = ("user", "assistant", "system", "developer")
_OWN_PARTS = frozenset({"input_text", "output_text", "input_image", "input_file"})
# Items of the application, not of the model, which are not to be summarised away.
_APPLICATION_ITEMS = frozenset({"additional_tools", "compaction", "compaction_trigger", "configuration_update"})
_FOREIGN_KEYS = frozenset({"tool_calls", "tool_call_id", "parts"})


class ResponsesDialect:
    """Items as `client.responses.create(input=...)` takes them: dicts, or what `response.output` holds."""

    name = "responses"

    def recognises(self, item: object) -> bool | None:
        """Return True for a type, or for parts, that nobody else has; None for a role and a text, which anybody has."""
        if isinstance(item, Message):
            return False
        fields = _fields(item)
        kind = fields.get("type")
        if _FOREIGN_KEYS & fields.keys() or fields.get("role", "user") not in _ROLES:
            return False
        if kind not in (None, "message"):
            return True if kind in ITEM_TYPES else None if isinstance(kind, str) and "role" not in fields else False
        if "role" not in fields:
            return False
        return _recognises_content(fields.get("content"), is_typed=kind == "message")

    def read(self, items: Sequence[Any], place: int) -> Iterator[Block]:
        """Yield a block for each message, for each result, and for a run of items that the model made.

        A reference may stand for a call or for its result: a run with one is read together with the results behind it.
        """
        start = 0
        fields = [self._fields_of(item, place + number) for number, item in enumerate(items)]
        while start < len(items):
            end = _end_of_run(fields, start)
            if end == start:
                end, entries = start + 1, (_read_single(fields[start]),)
            elif any(map(is_reference, fields[start:end])):
                run, last = fields[start:end], _end_of_outputs(fields, end)
                behind = fields[end:last]
                entries = (read_run_with_references(run, behind, fields[last:]), *map(_read_single, behind))
                end = last
            else:
                entries = (read_run(fields[start:end]),)
            yield Block(tuple(items[start:end]), entries)
            start = end

    def write(self, entries: Sequence[Entry]) -> Iterator[Block]:
        """Yield the items that each entry was made of."""
        for entry in entries:
            yield Block(tuple(_write_entry(entry)), (entry,))

    def join(self, blocks: Sequence[Block]) -> Sequence[Block]:
        """Give results that were made up the type that their calls want; otherwise any item may follow any other."""
        kinds = {call_id_of(item): item["type"] for block in blocks for item in _items_as_dicts(block) if is_call(item)}
        return [_with_output_type(block, kinds) for block in blocks]

    def check(self, items: Sequence[Any]) -> tuple[Violation, ...]:
        """Return everything the Responses API would reject."""
        return check_responses(items)

    def _fields_of(self, item: object, place: int) -> Item:
        found: object = as_json_data(item)
        fields = cast(Item, found) if isinstance(found, dict) else {}
        is_known = fields.get("role") in _ROLES or isinstance(fields.get("type"), str)
        if isinstance(item, Message) or _FOREIGN_KEYS & fields.keys() or not is_known:
            raise foreign(item, place, self.name)
        kind, content = fields.get("type", "message"), fields.get("content")
        # What has a text for its content is a message, and no item of a type that is to come.
        is_odd = not isinstance(content, str | list) if kind == "message" else isinstance(content, str)
        if is_odd and kind not in ITEM_TYPES:
            raise foreign(item, place, self.name)
        check_calls(fields.get("content"), place, self.name)
        return fields


def _fields(item: object) -> Mapping[str, Any]:
    if isinstance(item, Mapping):
        return cast(Mapping[str, Any], item)
    found = {key: getattr(item, key) for key in ("type", "role", "content", "parts") if hasattr(item, key)}
    return found if hasattr(item, "model_dump") else {}


def _recognises_content(content: object, *, is_typed: bool) -> bool | None:
    if isinstance(content, str):
        return True if is_typed else None
    if not isinstance(content, list | tuple):
        return False
    kinds = {_fields(part).get("type") for part in cast(Sequence[object], content)}
    return bool(kinds & _OWN_PARTS) or (is_typed and kinds <= {"refusal"})


def _end_of_run(items: Sequence[Item], start: int) -> int:
    """Return where the run of model-made items that begins here ends; `start` itself if none begins.

    A reply that is complete ends it: the next one may come in another call.
    """
    has_calls, has_reply, end = False, False, start
    waiting: set[str] = set()
    while end < len(items):
        item = items[end]
        kind = item.get("type", "message")
        is_answer = is_output(item) and bool(waiting)
        if not is_answer and (not _is_model_made(item) or (has_reply and not has_calls and _begins_reply(item))):
            break
        waiting -= {call_id_of(item)} if kind == "program_output" else set()
        waiting |= {call_id_of(item)} if kind == "program" else set()
        has_calls = has_calls or bool(call_id_of(item))
        has_reply = has_reply or kind == "message"
        end += 1
    return end


def _end_of_outputs(items: Sequence[Item], start: int) -> int:
    """Return where the last result ends that stands before the next item of the model; `start` if there is none."""
    end = place = start
    while place < len(items) and not _is_model_made(items[place]):
        place += 1
        end = place if is_output(items[place - 1]) else end
    return end


def _begins_reply(item: Mapping[str, Any]) -> bool:
    return item.get("type", "message") in ("message", "reasoning")


def _items_as_dicts(block: Block) -> Iterator[Item]:
    converted: Iterator[object] = map(as_json_data, block.items)
    return (cast(Item, item) for item in converted if isinstance(item, dict))


def _with_output_type(block: Block, call_types: Mapping[str, str]) -> Block:
    entry = block.entries[0] if len(block.entries) == 1 else {}
    kind = call_types.get(entry.get("tool_call_id") or "", "function_call")
    if entry.get("role") != "tool" or NATIVE in entry or kind == "function_call":
        return block
    return Block(tuple(write_output({**entry, NATIVE: {"type": f"{kind}_output"}})), block.entries)


def _is_model_made(item: Mapping[str, Any]) -> bool:
    kind = item.get("type", "message")
    if kind == "message":
        return item.get("role") == "assistant"
    return kind not in _APPLICATION_ITEMS and not is_output(item)


def _read_single(item: Item) -> Entry:
    """Return the entry of another's message, of a result, or of an item of the application."""
    kind = item.get("type", "message")
    if is_output(item):
        return read_output(item)
    if kind != "message":
        # Nobody said these: they stay, and token counters see how large they are.
        return {"role": "developer", "content": [{"type": kind, "item": item}], NATIVE: {"item": True}}
    if item.keys() <= {"role", "content"}:
        return item
    return {"role": item["role"], "content": item["content"], NATIVE: without(item, "role", "content")}


def _write_entry(entry: Entry) -> Iterator[Item]:
    role, content, native = entry["role"], entry["content"], native_of(entry)
    match role:
        case "tool":
            yield from write_output(entry)
        case "assistant" if is_output({"call_id": "gone", **native}):
            yield {"role": "assistant", "content": content}  # a result without its call, as text
        case "assistant":
            yield from write_run(entry)
        case _ if native.get("item") is True:
            yield content[0]["item"] if isinstance(content, list) else {"role": "developer", "content": content}
        case _:
            yield {"role": role, "content": content, **native}
