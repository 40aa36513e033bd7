"""The messages of Strands, which are those of Bedrock's Converse: two roles, results in the user's turn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from compact.adapters.strands_parts import blocks_of, call_of, content_of, from_json, to_json, use_of
from compact.core.log.legality import Violation
from compact.dialects.dialect import NATIVE, Block, Entry, foreign, without
from compact.dialects.translation import META

# Strands takes these off before a request leaves; ids and metrics are not the same after a restart.
_BESIDE_KEYS = ("tracking_id", "metadata")
_OWN_KEYS = frozenset({"role", "content", *_BESIDE_KEYS})
# Stands before an assistant's message that would open a conversation, which no provider of Strands takes.
OPENING = "[the conversation goes on]"


@dataclass(frozen=True, slots=True)
class StrandsDialect:
    """Reads and writes `strands.types.content.Message`; `protected_flag` is the key in `metadata.custom` that pins."""

    protected_flag: str = "protected"
    name: str = "strands"

    def recognises(self, item: object) -> bool | None:
        """A message whose content is a list of blocks with one key each, and no `type`."""
        if not isinstance(item, Mapping) or item.get("role") not in ("user", "assistant"):
            return False
        content = item.get("content")
        if not isinstance(content, list):
            return False
        return None if not content else all(isinstance(block, Mapping) and "type" not in block for block in content)

    def read(self, items: Sequence[Any], place: int) -> Iterator[Block]:
        """Each message is a block: an assistant's is one entry, a user's one for each result and one for the rest."""
        for number, item in enumerate(items, place):
            if self.recognises(item) is False:
                raise foreign(item, number, self.name)
            yield Block((item,), tuple(self._entries(item)))

    def _entries(self, item: Mapping[str, Any]) -> Iterator[Entry]:
        blocks: list[dict[str, Any]] = item["content"]
        around = to_json(without(item, "role", "content", *_BESIDE_KEYS))
        beside = {META: meta} if (meta := self._meta(item)) else {}
        kind = "toolUse" if item["role"] == "assistant" else "toolResult"
        special = [block[kind] for block in blocks if kind in block]
        content = content_of([block for block in blocks if kind not in block])
        if item["role"] == "assistant":
            native = {"message": around, **_order(blocks)}
            calls = {"tool_calls": [call_of(use) for use in special]} if special else {}
            yield {"role": "assistant", "content": content, **calls, NATIVE: native, **beside}
            return
        for number, result in enumerate(special):
            native = {"message": around if number == 0 else {}, **to_json(without(result, "toolUseId", "content"))}
            answer = content_of(result.get("content") or [])
            yield {
                "role": "tool",
                "tool_call_id": result.get("toolUseId", ""),
                "content": "" if answer is None else answer,
                NATIVE: native if answer is not None else {**native, "is_empty": True},
                **beside,
            }
        if content is not None or not special:
            yield {"role": "user", "content": content, NATIVE: {"message": {} if special else around}, **beside}

    def _meta(self, item: Mapping[str, Any]) -> dict[str, Any]:
        """What the user has put beside the message; a message that Strands has pinned is protected here, too."""
        custom = (item.get("metadata") or {}).get("custom")
        meta = dict(cast(Mapping[str, Any], custom)) if isinstance(custom, Mapping) else {}
        return {**meta, self.protected_flag: True} if meta.get("pinned") is True else meta

    def write(self, entries: Sequence[Entry]) -> Iterator[Block]:
        """A message for each entry; what belongs together is merged when the whole prompt is joined."""
        for entry in entries:
            yield Block((_message(entry),), (entry,))

    def join(self, blocks: Sequence[Block]) -> Sequence[Block]:
        """Roles alternate and the user begins: neighbours of one role are merged."""
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
        """What Converse would reject."""
        return tuple(_violations(items))


def _order(blocks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Where calls stand among other blocks, unless they are at the end."""
    places = [place for place, block in enumerate(blocks) if "toolUse" in block]
    at_the_end = list(range(len(blocks) - len(places), len(blocks)))
    return {} if places == at_the_end else {"calls_at": places}


def _message(entry: Entry) -> dict[str, Any]:
    native = from_json(entry.get(NATIVE) or {})
    around = native.pop("message", {})
    blocks = blocks_of(entry.get("content"))
    if entry["role"] == "tool":
        content = [] if native.pop("is_empty", False) and not entry.get("content") else blocks
        result = {"toolUseId": entry.get("tool_call_id"), "content": content, **native}
        return {"role": "user", "content": [{"toolResult": {"status": "success", **result}}], **around}
    is_ours = NATIVE not in entry and not entry.get("tool_calls")
    if entry["role"] != "assistant" or is_ours:
        # Our summary travels in the user's turn: before it there may be nothing, behind it an open tool loop.
        return {"role": "user", "content": blocks, **around}
    uses = [use_of(call) for call in entry.get("tool_calls") or ()]
    places = native.get("calls_at", ())
    if len(places) == len(uses) and max(places, default=0) < len(blocks) + len(uses):
        for place, use in zip(places, uses, strict=True):
            blocks.insert(place, use)
    else:
        blocks += uses
    return {"role": "assistant", "content": blocks, **around}


def _role(block: Block) -> str:
    return block.items[-1]["role"]


def _merged(first: Block, second: Block) -> Block:
    one, two = first.items[-1], second.items[0]
    content = [*one["content"], *two["content"]]
    if one["role"] == "assistant":  # reasoning stands at the beginning, or its provider does not take it
        content.sort(key=lambda block: "reasoningContent" not in block)
    elif one["content"]:  # so do results
        content.sort(key=lambda block: "toolResult" not in block)
    around = {**without(two, *_BESIDE_KEYS), **without(one, *_BESIDE_KEYS)}
    message = {**around, "role": one["role"], "content": content}
    return Block((*first.items[:-1], message, *second.items[1:]), (*first.entries, *second.entries))


def _violations(items: Sequence[Any]) -> Iterator[Violation]:
    open_calls: list[str] = []
    before = ""
    for place, item in enumerate(items):
        role, content = item.get("role"), item.get("content")
        yield from (Violation("unknown_key", place, f"a message has no {key!r}") for key in set(item) - _OWN_KEYS)
        if role == before or (not before and role != "user"):
            yield Violation("roles_alternate", place, f"{role} after {before or 'nothing'}")
        if not content:
            yield Violation("empty_content", place, f"a {role} message without content")
        before, blocks = role, content or []
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


def _bad_blocks(blocks: Sequence[Mapping[str, Any]], role: str, place: int) -> Iterator[Violation]:
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
