"""What the Messages API answers with 400."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from compact.core.log.legality import Violation
from compact.dialects.interleaving import as_plain

_MOST_MARKS = 4
_KEYS: Mapping[str, frozenset[str]] = {
    "text": frozenset({"type", "text", "cache_control", "citations"}),
    "image": frozenset({"type", "source", "cache_control", "transformations"}),
    "document": frozenset({"type", "source", "cache_control", "citations", "context", "title"}),
    "thinking": frozenset({"type", "thinking", "signature"}),
    "redacted_thinking": frozenset({"type", "data"}),
    "tool_use": frozenset({"type", "id", "name", "input", "cache_control", "caller", "toolset_name"}),
    "tool_result": frozenset({"type", "tool_use_id", "content", "is_error", "cache_control", "toolset_name"}),
}
_USERS_ONLY = frozenset({"tool_result", "document", "image", "search_result"})
_ASSISTANTS_ONLY = frozenset({"tool_use", "thinking", "redacted_thinking", "server_tool_use", "mcp_tool_use"})
_THINKING = ("thinking", "redacted_thinking")
Blocks = list[dict[str, Any]]


@dataclass(slots=True)
class _Turn:
    """Neighbouring messages of one role, which the API takes for one."""

    role: str
    place: int
    blocks: Blocks = field(default_factory=Blocks)


def check_anthropic(items: Sequence[Any], *, alternating: bool = False) -> tuple[Violation, ...]:
    """Every rule of the Messages API that a list breaks; the API joins neighbours of one role.

    Others that speak its dialect do not: with `alternating`, two neighbours of one role are a violation.
    """
    return tuple(_violations(items, alternating))


def _violations(items: Sequence[Any], alternating: bool) -> Iterator[Violation]:
    turns: list[_Turn] = []
    for place, item in enumerate(items):
        fields = as_plain(item)
        wrong = _wrong_shape(fields, place)
        if wrong:
            yield wrong
            continue
        yield from _content_violations(fields, place, is_last=place == len(items) - 1)
        if turns and turns[-1].role == fields["role"]:
            if alternating:
                yield Violation("alternation", place, f"two {fields['role']} messages in a row")
        else:
            turns.append(_Turn(fields["role"], place))
        turns[-1].blocks.extend(_blocks(fields["content"]))
    yield from _order_violations([turn for turn in turns if turn.role != "system"])


def _order_violations(turns: Sequence[_Turn]) -> Iterator[Violation]:
    """Everything about the order of turns, and of blocks in them."""
    if not turns:
        yield Violation("no_messages", 0, "at least one message is required")
        return
    if turns[0].role != "user":
        yield Violation("first_turn", turns[0].place, "the first message must be the user's")
    yield from _repeated_ids(turns)
    open_calls: list[str] = []
    for turn in turns:
        yield from _result_violations(turn, open_calls)
        open_calls = []
        if turn.role == "assistant":
            open_calls = [str(block.get("id")) for block in turn.blocks if block.get("type") == "tool_use"]
            yield from _assistant_violations(turn, is_last=turn is turns[-1])
    for call_id in open_calls:
        yield Violation("call_without_result", turns[-1].place, f"the call {call_id!r} has no result")
    marks = sum(bool(block.get("cache_control")) for turn in turns for block in _walk(turn.blocks))
    if marks > _MOST_MARKS:
        yield Violation("too_many_marks", 0, f"{marks} blocks with cache_control, {_MOST_MARKS} are allowed")


def _repeated_ids(turns: Sequence[_Turn]) -> Iterator[Violation]:
    seen: set[str] = set()
    for turn in turns:
        for block in turn.blocks:
            if block.get("type") in ("tool_use", "server_tool_use", "mcp_tool_use"):
                if block.get("id") in seen:
                    yield Violation("duplicate_call_id", turn.place, f"the id {block.get('id')!r} was used before")
                seen.add(str(block.get("id")))


def _result_violations(turn: _Turn, open_calls: Sequence[str]) -> Iterator[Violation]:
    """Results come first in the turn after their calls, one for each."""
    left, has_others = list(open_calls), False
    for block in turn.blocks:
        if block.get("type") != "tool_result":
            has_others = True
            continue
        call_id = str(block.get("tool_use_id"))
        if call_id not in left:
            yield Violation("result_without_call", turn.place, f"the turn before has no open call {call_id!r}")
        elif has_others:
            yield Violation("result_not_first", turn.place, f"the result of {call_id!r} stands behind other blocks")
        left = [other for other in left if other != call_id]
    for call_id in left:
        yield Violation("call_without_result", turn.place, f"the call {call_id!r} has no result right behind it")


def _assistant_violations(turn: _Turn, *, is_last: bool) -> Iterator[Violation]:
    if turn.blocks and turn.blocks[-1].get("type") in _THINKING:
        yield Violation("thinking_last", turn.place, "the last block of an assistant's turn is thinking")
    served = {str(b.get("tool_use_id")) for b in turn.blocks if str(b.get("type")).endswith("_tool_result")}
    called = [str(b.get("id")) for b in turn.blocks if b.get("type") in ("server_tool_use", "mcp_tool_use")]
    for call_id in called:
        if call_id not in served and not is_last:
            yield Violation("call_without_result", turn.place, f"the server's call {call_id!r} has no result")
    for call_id in served - set(called):
        yield Violation("result_without_call", turn.place, f"no call of the server has the id {call_id!r}")


def _wrong_shape(item: object, place: int) -> Violation | None:
    if not isinstance(item, dict):
        return Violation("not_a_message", place, f"expected an object, got {type(item).__name__}")
    fields = cast(dict[str, Any], item)
    if fields.get("role") not in ("user", "assistant", "system"):
        return Violation("unknown_role", place, f"there is no role {fields.get('role')!r}")
    for key in fields:
        if key not in ("role", "content"):
            return Violation("unknown_key", place, f"a message has no {key!r}")
    if not isinstance(fields.get("content"), str | list):
        return Violation("no_content", place, "content is a text or a list of blocks")
    return None


def _blocks(content: str | Blocks) -> Blocks:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _walk(blocks: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """All blocks, those inside results included."""
    for block in blocks:
        yield block
        if block.get("type") == "tool_result" and isinstance(block.get("content"), list):
            yield from _walk(block["content"])


def _content_violations(item: Mapping[str, Any], place: int, *, is_last: bool) -> Iterator[Violation]:
    content, role = item["content"], item["role"]
    may_be_empty = is_last and role == "assistant"
    if not content and not may_be_empty:
        yield Violation("empty_content", place, f"a {role} message without content")
        return
    blocks = _blocks(content) if content else []
    for block in blocks:
        if not isinstance(block, dict) or not isinstance(block.get("type"), str):
            yield Violation("not_a_block", place, "a block is an object with a type")
            return
        yield from _block_violations(block, role, place)
    last = blocks[-1] if blocks else {}
    if may_be_empty and last.get("type") == "text" and str(last.get("text")) != str(last.get("text")).rstrip():
        yield Violation("trailing_space", place, "the beginning of a reply ends with white space")


def _block_violations(block: Mapping[str, Any], role: str, place: int) -> Iterator[Violation]:
    kind = block["type"]
    for key in block.keys() - _KEYS.get(kind, block.keys() - {"meta", "native"}):
        yield Violation("unknown_key", place, f"a {kind} block has no {key!r}")
    if (role != "user" and kind in _USERS_ONLY) or (role != "assistant" and kind in _ASSISTANTS_ONLY):
        yield Violation("wrong_role", place, f"a {kind} block in a message of the {role}")
    match kind:
        case "text" if not str(block.get("text") or "").strip():
            yield Violation("empty_content", place, "a text block without text")
        case "thinking" if not block.get("signature") or not isinstance(block.get("thinking"), str):
            yield Violation("thinking_unsigned", place, "a thinking block without its signature")
        case "redacted_thinking" if not block.get("data"):
            yield Violation("thinking_unsigned", place, "a redacted_thinking block without its data")
        case "tool_use" if not (block.get("id") and block.get("name") and isinstance(block.get("input"), dict)):
            yield Violation("incomplete_call", place, "a tool_use block needs an id, a name and an object as input")
        case "tool_result":
            yield from _inner_violations(block, place)
        case _:
            pass


def _inner_violations(result: Mapping[str, Any], place: int) -> Iterator[Violation]:
    content = result.get("content")
    if content is not None and not isinstance(content, str | list):
        yield Violation("not_a_block", place, "the content of a result is a text or a list of blocks")
    for block in content if isinstance(content, list) else ():
        if not isinstance(block, dict) or not isinstance(block.get("type"), str):
            yield Violation("not_a_block", place, "a block is an object with a type")
        elif block["type"] in _ASSISTANTS_ONLY or block["type"] == "tool_result":
            yield Violation("wrong_role", place, f"a {block['type']} block in a result")
        elif block["type"] == "text" and not block.get("text"):
            yield Violation("empty_content", place, "a text block without text")
