"""Anthropic Messages: turns of content blocks, where results are the first blocks of the user's next turn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from compact.core.messages.legality import Violation
from compact.core.messages.message import Message
from compact.dialects.anthropic_check import check_anthropic as check_anthropic
from compact.dialects.dialect import (
    CACHE_MARK,
    NATIVE,
    Block,
    Entry,
    as_json_data,
    fields_of,
    foreign,
    is_summary,
    native_of,
    with_words,
    without,
)
from compact.dialects.turns import (
    CALL,
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

_ROLES = ("user", "assistant", "system")
_EMPTY = {"content": EMPTY_CONTENT}
# What stands in the content of an assistant's turn; all other blocks (thinking, server tools) are opaque.
_CONTENT_BLOCKS = frozenset({"text", "image", "document"})
_OWN_BLOCKS = frozenset(
    {"tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use", "mcp_tool_use", "mcp_tool_result"}
    | {"search_result", "container_upload"}
)
_FOREIGN_BLOCKS = frozenset({"image_url", "input_audio", "file", "refusal", "input_text", "output_text", "input_image"})
_CHAT_KEYS = frozenset({"tool_calls", "tool_call_id", "parts", "function_call"})


class AnthropicDialect:
    """Messages as `client.messages.create` takes them: dicts, with blocks that may be objects of the SDK."""

    name = "anthropic"

    def recognises(self, item: object) -> bool | None:
        """Return True for blocks that nobody else has, None for plain text, which anybody may have."""
        if isinstance(item, Message) or not isinstance(item, Mapping):
            return False
        fields = cast(Mapping[str, Any], item)
        if fields.get("role") not in _ROLES or "type" in fields or _CHAT_KEYS & fields.keys():
            return False
        content = fields.get("content")
        if isinstance(content, str):
            return None
        if not isinstance(content, list | tuple):
            return False
        kinds = [_kind(block) for block in cast(Sequence[object], content)]
        if any(kind in _OWN_BLOCKS or kind.endswith("_tool_result") for kind in kinds):
            return True
        if any(map(_has_source, cast(Sequence[object], content))):
            return True
        return False if _FOREIGN_BLOCKS & set(kinds) or "" in kinds else None

    def read(self, items: Sequence[Any], place: int) -> Iterator[Block]:
        """Yield a block for each turn.

        An assistant's turn is one entry; a user's is one for each result and one for the rest.
        """
        for number, item in enumerate(items):
            fields: Any = as_json_data(item)
            if isinstance(item, Message) or not _is_turn(fields):
                raise foreign(item, place + number, self.name)
            yield Block((item,), tuple(_read_turn(fields)))

    def write(self, entries: Sequence[Entry]) -> Iterator[Block]:
        """Yield a turn for each entry; `join` puts together what belongs together."""
        for entry in entries:
            role, blocks = _write_turn(entry)
            rest = native_of(entry).get("item", {})
            is_bare = isinstance(entry["content"], str) and len(blocks) == 1 and not rest
            content = blocks[0]["text"] if is_bare and set(blocks[0]) == {"type", "text"} else blocks
            yield Block(({"role": role, "content": content, **rest},), (entry,))

    def join(self, blocks: Sequence[Block]) -> Sequence[Block]:
        """Make one turn of neighbours of one role, and begin with a turn of the user."""
        joined: list[Block] = []
        for block in (with_words(block, _EMPTY) for block in blocks):
            if joined and block.items and _roles(joined[-1])[-1:] == _roles(block)[:1] != ["system"]:
                joined[-1] = _merge(joined[-1], block)
            else:
                joined.append(block)
        # An empty turn of the assistant's at the end is where its reply begins.
        if joined and _roles(joined[-1])[-1:] == ["assistant"] and joined[-1].entries == blocks[-1].entries:
            joined[-1] = blocks[-1]
        first = next((role for block in joined for role in _roles(block) if role != "system"), "user")
        if first != "user":
            joined.insert(0, Block(({"role": "user", "content": OPENING},), ()))
        return joined

    def check(self, items: Sequence[Any]) -> tuple[Violation, ...]:
        """Return everything the Messages API would reject."""
        return check_anthropic(items)


def _is_turn(fields: object) -> bool:
    item = fields_of(fields)
    has_content = isinstance(item.get("content"), str | list)
    return item.get("role") in _ROLES and has_content and not _CHAT_KEYS & item.keys()


def _kind(block: object) -> str:
    """Return the type of a block, which may be an object of the SDK."""
    kind: object = fields_of(block).get("type", getattr(block, "type", None))
    return kind if isinstance(kind, str) else ""


def _has_source(block: object) -> bool:
    """Return True for an image or a document as it is written here; others have these types too."""
    has_source = "source" in fields_of(block) or hasattr(block, "source")
    return has_source and _kind(block) in ("document", "image")


def _roles(block: Block) -> list[str]:
    return [item["role"] for item in block.items]


def _merge(first: Block, second: Block) -> Block:
    """Return two turns as one; a block may hold several items, of which the last and the first meet."""
    *before, last = first.items
    following, *after = second.items
    rest = {**without(last, "role", "content"), **without(following, "role", "content")}
    content = [*_blocks_of(last), *_blocks_of(following)]
    # Whatever order they are in, results come first.
    content.sort(key=lambda block: _kind(block) != "tool_result")
    turn = {"role": last["role"], "content": content, **rest}
    return Block((*before, turn, *after), (*first.entries, *second.entries))


def _blocks_of(item: Mapping[str, Any]) -> list[Any]:
    content = item["content"]
    return [_text_block(content)] if isinstance(content, str) else list(content)


def _read_turn(item: dict[str, Any]) -> Iterator[Entry]:
    role, content = item["role"], item["content"]
    rest = without(item, "role", "content")
    native: dict[str, Any] = {"item": rest} if rest else {}
    if role == "system":
        native["role"] = role  # unlike the instructions that others add to a prompt
    if isinstance(content, str):
        yield item if not native else {"role": role, "content": content, NATIVE: native}
    elif role == "assistant":
        yield _read_assistant(content, native)
    else:
        yield from _read_user(role, content, native)


def _read_assistant(content: Sequence[Any], native: dict[str, Any]) -> Entry:
    pieces: list[TurnPiece] = []
    extras: list[dict[str, Any]] = []
    for block in content:
        if _kind(block) == "tool_use":
            pieces.append(TurnPiece(CALL, _read_call(block)))
            extras.append(without(block, "type", "id", "name", "input"))
        else:
            pieces.append(TurnPiece(PART if _kind(block) in _CONTENT_BLOCKS else OPAQUE_BLOCK, block))
    if any(extras):
        native["calls"] = extras
    return assistant_entry(pieces, native)


def _read_user(role: str, content: Sequence[Any], native: dict[str, Any]) -> Iterator[Entry]:
    results = [block for block in content if _kind(block) == "tool_result"]
    others = [block for block in content if _kind(block) != "tool_result"]
    for number, block in enumerate(results, 1):
        is_last = number == len(results) and not others
        yield _read_result(block, native if is_last else {})
    if others or not results:
        marks = [mark for block in others if (mark := fields_of(block).get(CACHE_MARK))]
        native |= {CACHE_MARK: marks[-1]} if marks else {}
        yield {"role": role, "content": others, **({NATIVE: native} if native else {})}


def _read_call(block: Mapping[str, Any]) -> dict[str, Any]:
    return write_call(FunctionCall(block.get("id", ""), block.get("name", ""), write_json(block.get("input"))))


def _read_result(block: dict[str, Any], item: Mapping[str, Any]) -> Entry:
    native = {**without(block, "tool_use_id", "content"), **item}
    content = block.get("content")
    if not content and content != "":
        native["no_content"] = content if "content" in block else False
    return {"role": "tool", "tool_call_id": block.get("tool_use_id", ""), "content": content or "", NATIVE: native}


def _write_turn(entry: Entry) -> tuple[str, list[dict[str, Any]]]:
    """Return the role and the blocks of a turn."""
    native = native_of(entry)
    if entry["role"] == "tool":
        return "user", [_write_result(entry)]
    parts = _write_content(entry["content"], native.get(CACHE_MARK))
    # A result whose call is gone is said by the user: an assistant's turn may be the beginning of the reply.
    if entry["role"] != "assistant" or is_summary(entry) or native.get("type") == "tool_result":
        return native.get("role", "user"), parts or [_text_block(EMPTY_CONTENT)]
    nothing: dict[str, Any] = {}
    calls = list(read_calls(entry))
    extras: Sequence[dict[str, Any]] = native.get("calls") or [nothing] * len(calls)
    uses = [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": read_object(call.arguments), **extra}
        for call, extra in zip(calls, extras, strict=True)
    ]
    blocks = arrange(native.get(ORDER, ""), parts, uses, native.get(OPAQUE, ()))
    return "assistant", blocks or [_text_block(EMPTY_CONTENT)]


def _write_result(entry: Entry) -> dict[str, Any]:
    # A session may have been in another dialect before: what that has kept of a result is not of this type.
    native = native_of(entry) if native_of(entry).get("type") == "tool_result" else dict[str, Any]()
    fields = without(native, "type", "item", "no_content")
    block = {"type": "tool_result", "tool_use_id": entry["tool_call_id"], **fields}
    if entry["content"] == "" and "no_content" in native:
        return block if native["no_content"] is False else {**block, "content": native["no_content"]}
    # In the order that callers write it in: what is equal should be the same bytes for a provider's cache.
    marks = {key: block.pop(key) for key in ("is_error", CACHE_MARK) if key in block}
    return {**block, "content": entry["content"], **marks}


def _write_content(content: object, mark: object) -> list[dict[str, Any]]:
    if isinstance(content, list | tuple):
        return list(cast(Sequence[dict[str, Any]], content))
    if not isinstance(content, str) or not content.strip():
        return []
    return [{**_text_block(content), CACHE_MARK: mark}] if mark else [_text_block(content)]


def _text_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}
