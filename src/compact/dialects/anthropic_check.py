"""What the Messages API answers with 400."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeGuard, cast

from compact.core.messages.legality import Violation
from compact.dialects.dialect import as_json_data

# The API's own limit for marks of its cache.
_MAX_CACHE_MARKS = 4
_KEYS: Mapping[str, frozenset[str]] = {
    "text": frozenset({"type", "text", "cache_control", "citations"}),
    "image": frozenset({"type", "source", "cache_control", "transformations"}),
    "document": frozenset({"type", "source", "cache_control", "citations", "context", "title"}),
    "thinking": frozenset({"type", "thinking", "signature"}),
    "redacted_thinking": frozenset({"type", "data"}),
    "tool_use": frozenset({"type", "id", "name", "input", "cache_control", "caller", "toolset_name"}),
    "tool_result": frozenset({"type", "tool_use_id", "content", "is_error", "cache_control", "toolset_name"}),
}
_OTHER_TYPES = frozenset({"search_result", "server_tool_use", "mcp_tool_use", "container_upload"})
_USERS_ONLY = frozenset({"tool_result", "document", "image", "search_result"})
_ASSISTANTS_ONLY = frozenset({"tool_use", "thinking", "redacted_thinking", "server_tool_use", "mcp_tool_use"})
_THINKING = ("thinking", "redacted_thinking")
_SERVER_CALLS = ("server_tool_use", "mcp_tool_use")
ContentBlock: TypeAlias = Mapping[str, Any]


@dataclass(slots=True)
class _Turn:
    """Neighbouring messages of one role, which the API takes for one."""

    role: str
    place: int
    blocks: list[ContentBlock] = field(default_factory=list[ContentBlock])


def check_anthropic(
    items: Sequence[Any], *, alternating: bool = False, known_only: bool = False
) -> tuple[Violation, ...]:
    """Return every rule of the Messages API that a list breaks; the API joins neighbours of one role.

    Others that speak its dialect do not: with `alternating`, two neighbours of one role are a violation. With
    `known_only`, so is a block of a type that is not known here; the API has new ones from time to time.
    """
    return tuple(_violations(items, alternating, known_only))


def _violations(items: Sequence[Any], alternating: bool, known_only: bool) -> Iterator[Violation]:
    turns: list[_Turn] = []
    for place, item in enumerate(items):
        fields: Any = as_json_data(item)
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
        blocks = [block for block in _blocks(fields["content"]) if _is_block(block)]
        if known_only:
            yield from _unknown_types(blocks, place)
        turns[-1].blocks.extend(blocks)
    yield from _order_violations([turn for turn in turns if turn.role != "system"])


def _order_violations(turns: Sequence[_Turn]) -> Iterator[Violation]:
    """Yield everything about the order of turns, and of blocks in them."""
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
            open_calls = [str(block.get("id")) for block in turn.blocks if block["type"] == "tool_use"]
            yield from _assistant_violations(turn, is_last=turn is turns[-1])
    for call_id in open_calls:
        yield Violation("call_without_result", turns[-1].place, f"the call {call_id!r} has no result")
    marks = sum(bool(block.get("cache_control")) for turn in turns for block in _walk(turn.blocks))
    if marks > _MAX_CACHE_MARKS:
        yield Violation("too_many_marks", 0, f"{marks} blocks with cache_control, {_MAX_CACHE_MARKS} are allowed")


def _repeated_ids(turns: Sequence[_Turn]) -> Iterator[Violation]:
    seen: set[str] = set()
    for turn in turns:
        for block in turn.blocks:
            if block["type"] == "tool_use" or block["type"] in _SERVER_CALLS:
                call_id = str(block.get("id"))
                if call_id in seen:
                    yield Violation("duplicate_call_id", turn.place, f"the id {call_id!r} was used before")
                seen.add(call_id)


def _result_violations(turn: _Turn, open_calls: Sequence[str]) -> Iterator[Violation]:
    """Yield what is wrong with results: they come first in the turn after their calls, one for each."""
    left, has_others = list(open_calls), False
    for block in turn.blocks:
        if block["type"] != "tool_result":
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
    if turn.blocks and turn.blocks[-1]["type"] in _THINKING:
        yield Violation("thinking_last", turn.place, "the last block of an assistant's turn is thinking")
    served = {str(block.get("tool_use_id")) for block in turn.blocks if block["type"].endswith("_tool_result")}
    called = [str(block.get("id")) for block in turn.blocks if block["type"] in _SERVER_CALLS]
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


def _blocks(content: object) -> Sequence[object]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return cast(Sequence[object], content) if isinstance(content, list) else ()


def _is_block(block: object) -> TypeGuard[ContentBlock]:
    return isinstance(block, dict) and isinstance(cast(ContentBlock, block).get("type"), str)


def _unknown_types(blocks: Sequence[ContentBlock], place: int) -> Iterator[Violation]:
    for block in blocks:
        kind: str = block["type"]
        if kind not in _KEYS and kind not in _OTHER_TYPES and not kind.endswith("_tool_result"):
            yield Violation("unknown_type", place, f"there is no block of the type {kind!r}")


def _walk(blocks: Sequence[ContentBlock]) -> Iterator[ContentBlock]:
    """Yield all blocks, those inside results included."""
    for block in blocks:
        yield block
        if block["type"] == "tool_result" and isinstance(block.get("content"), list):
            yield from _walk([inner for inner in _blocks(block["content"]) if _is_block(inner)])


def _content_violations(item: Mapping[str, Any], place: int, *, is_last: bool) -> Iterator[Violation]:
    content, role = item["content"], item["role"]
    may_be_empty = is_last and role == "assistant"
    if not content and not may_be_empty:
        yield Violation("empty_content", place, f"a {role} message without content")
        return
    blocks: Sequence[object] = _blocks(content) if content else ()
    for block in blocks:
        if not _is_block(block):
            yield Violation("not_a_block", place, "a block is an object with a type")
            return
        yield from _block_violations(block, role, place)
    last = blocks[-1] if blocks else None
    if may_be_empty and _is_block(last) and last["type"] == "text" and _ends_with_space(last):
        yield Violation("trailing_space", place, "the beginning of a reply ends with white space")


def _ends_with_space(block: ContentBlock) -> bool:
    text = str(block.get("text"))
    return text != text.rstrip()


def _block_violations(block: ContentBlock, role: str, place: int) -> Iterator[Violation]:
    kind: str = block["type"]
    for key in block.keys() - _KEYS.get(kind, block.keys() - {"meta", "native"}):
        yield Violation("unknown_key", place, f"a {kind} block has no {key!r}")
    if (role != "user" and kind in _USERS_ONLY) or (role != "assistant" and kind in _ASSISTANTS_ONLY):
        yield Violation("wrong_role", place, f"a {kind} block in a message of the {role}")
    match kind:
        case "text" if not str(block.get("text") or "").strip():
            yield Violation("empty_content", place, "a text block without text")
        case "text" if block.get("citations") and role == "user":
            yield Violation("wrong_role", place, "a text with citations in a message of the user")
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


def _inner_violations(result: ContentBlock, place: int) -> Iterator[Violation]:
    content: object = result.get("content")
    if content is not None and not isinstance(content, str | list):
        yield Violation("not_a_block", place, "the content of a result is a text or a list of blocks")
    inner = _blocks(cast(object, content)) if isinstance(content, list) else ()
    for block in inner:
        if not _is_block(block):
            yield Violation("not_a_block", place, "a block is an object with a type")
        elif block["type"] in _ASSISTANTS_ONLY or block["type"] == "tool_result":
            yield Violation("wrong_role", place, f"a {block['type']} block in a result")
        elif block["type"] == "text" and not block.get("text"):
            yield Violation("empty_content", place, "a text block without text")
