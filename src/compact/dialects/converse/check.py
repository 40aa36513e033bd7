"""What Converse answers with a ValidationException."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from compact.core.json_data import is_list, is_mapping
from compact.core.messages.legality import Violation
from compact.core.plurals import quantity
from compact.dialects.converse.blocks import BLOCKS, CALL, MARK, REASONING, RESULT, is_call

# The limit of the API for marks of its cache, those of system prompt and tools included.
_MAX_MARKS = 4
_USERS_ONLY = frozenset({"document", "guardContent", "searchResult", "video"})
_RESULT_BLOCKS = frozenset({"text", "json", "image", "document", "video", "audio", "searchResult"})


def check_converse(
    items: Sequence[Any], *, local_keys: Collection[str] = (), known_only: bool = False
) -> tuple[Violation, ...]:
    """Return every rule of Converse that a list breaks; `local_keys` are removed before a request leaves.

    With `known_only`, a block that is not known here is a violation; the API has new ones from time to time.
    """
    if not items:
        return (Violation("no_messages", 0, "at least one message is required"),)
    unknown = _unknown_blocks(items) if known_only else ()
    return (*_violations(items, local_keys), *unknown)


def _unknown_blocks(items: Sequence[Any]) -> Iterator[Violation]:
    for place, item in enumerate(items):
        if _wrong_shape(item, place):
            continue
        for kind in [kind for block in item["content"] for kind in block if kind not in BLOCKS]:
            yield Violation("unknown_type", place, f"there is no block {kind!r}")


def _violations(items: Sequence[Any], local_keys: Collection[str]) -> Iterator[Violation]:
    open_calls: list[str] = []
    before = ""
    marks = 0
    for place, item in enumerate(items):
        wrong = _wrong_shape(item, place)
        if wrong:
            yield wrong
            continue
        role, blocks = item["role"], item["content"]
        for key in item.keys() - {"role", "content", *local_keys}:
            yield Violation("unknown_key", place, f"a message has no {key!r}")
        if role == before or (not before and role != "user"):
            yield Violation("roles_alternate", place, f"{role} after {before or 'nothing'}")
        before = role
        yield from _content_violations(blocks, role, place)
        answered = [_id_of(block[RESULT]) for block in blocks if RESULT in block] if role == "user" else []
        yield from _unpaired(open_calls, answered, place)
        open_calls = [_id_of(block[CALL]) for block in blocks if is_call(block)]
        if len(set(open_calls)) != len(open_calls):
            yield Violation("duplicate_call_id", place, "two calls of one message share an id")
        marks += sum(MARK in block for block in blocks)
    yield from _unpaired(open_calls, [], len(items))
    if marks > _MAX_MARKS:
        yield Violation("too_many_marks", 0, f"{quantity(marks, 'block')} with cachePoint, {_MAX_MARKS} are allowed")


def _wrong_shape(item: object, place: int) -> Violation | None:
    if not is_mapping(item):
        return Violation("not_a_message", place, f"expected an object, got {type(item).__name__}")
    if item.get("role") not in ("user", "assistant"):
        return Violation("unknown_role", place, f"there is no role {item.get('role')!r}")
    content = item.get("content")
    if not is_list(content) or not content:
        return Violation("empty_content", place, f"a message of the {item['role']} without content")
    if not all(is_mapping(block) for block in content):
        return Violation("not_a_block", place, "a block is an object")
    return None


def _id_of(fields: object) -> str:
    return str(fields.get("toolUseId") or "") if is_mapping(fields) else ""


def _unpaired(calls: Sequence[str], answers: Sequence[str], place: int) -> Iterator[Violation]:
    for call in calls:
        if answers.count(call) != 1:
            yield Violation("call_without_result", place - 1, f"{answers.count(call)} results for the call {call!r}")
    for answer in answers:
        if answer not in calls:
            yield Violation("result_without_call", place, f"the message before has no call {answer!r}")


def _content_violations(blocks: Sequence[Mapping[str, Any]], role: str, place: int) -> Iterator[Violation]:
    for block in blocks:
        yield from _block_violations(block, role, place)
    if role == "user":
        is_result = [RESULT in block for block in blocks if MARK not in block]
        if is_result != sorted(is_result, reverse=True):
            yield Violation("result_not_first", place, "results stand first in their message")
        if any("document" in block for block in blocks) and not any("text" in block for block in blocks):
            yield Violation("document_alone", place, "a message with a document needs a text")
    kinds = {kind for block in blocks for kind in block}
    if {CALL, REASONING} <= kinds and REASONING not in blocks[0]:
        yield Violation("reasoning_not_first", place, "a message with reasoning and calls begins with the reasoning")
    for before, block in zip([{}, *blocks], blocks, strict=False):
        if MARK in block and (not before or REASONING in before):
            yield Violation("mark_without_content", place, "a cachePoint stands behind content, not behind reasoning")


def _block_violations(block: Mapping[str, Any], role: str, place: int) -> Iterator[Violation]:
    if len(block) != 1:
        yield Violation("not_a_block", place, f"a block has one key, not {', '.join(map(str, block)) or 'none'}")
        return
    kind = next(iter(block))
    value: Any = block[kind]
    misplaced = {CALL, REASONING} if role == "user" else _USERS_ONLY
    if kind in misplaced or (kind == RESULT and role == "assistant" and not _is_served(value)):
        yield Violation("wrong_role", place, f"{kind} in a message of the {role}")
    elif kind == "text":
        if not (isinstance(value, str) and value.strip()):
            yield Violation("empty_content", place, "a text block without text")
    elif not is_mapping(value):
        yield Violation("not_a_block", place, f"{kind} is an object")
    elif kind == CALL and not (_id_of(value) and value.get("name") and is_mapping(value.get("input"))):
        yield Violation("incomplete_call", place, "toolUse needs a toolUseId, a name and an object as input")
    elif kind == RESULT:
        yield from _result_violations(value, place)


def _is_served(result: object) -> bool:
    return is_mapping(result) and "type" in result


def _result_violations(result: Mapping[str, Any], place: int) -> Iterator[Violation]:
    content = result.get("content")
    if not is_list(content):
        yield Violation("not_a_block", place, "the content of a toolResult is a list of blocks")
        return
    if not content and result.get("status") == "error":
        yield Violation("empty_content", place, "a toolResult with the status error and no content")
    if result.get("status", "success") not in ("success", "error"):
        yield Violation("wrong_status", place, f"there is no status {result.get('status')!r}")
    for block in content:
        if not is_mapping(block) or len(block) != 1 or not _RESULT_BLOCKS & block.keys():
            yield Violation("not_a_block", place, f"a toolResult holds {', '.join(sorted(_RESULT_BLOCKS))}")
        elif "text" in block and not (isinstance(block["text"], str) and block["text"].strip()):
            yield Violation("empty_content", place, "a text block without text")
