"""What the Vercel AI SDK throws an error for: a message that is no `ModelMessage`, a call without its result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from compact.core.json_data import is_list, is_mapping
from compact.core.messages.legality import Violation
from compact.dialects.vercel.parts import CALL, REQUEST, RESPONSE, RESULT, id_of, kind_of

_PARTS: Mapping[str, frozenset[str]] = {
    "user": frozenset({"text", "image", "file"}),
    "assistant": frozenset(
        {"text", "file", "reasoning", "reasoning-file", "redacted-reasoning", "custom", CALL, RESULT, REQUEST}
    ),
    "tool": frozenset({RESULT, RESPONSE}),
}
_KNOWN = frozenset(kind for kinds in _PARTS.values() for kind in kinds)
_KEYS = frozenset({"role", "content", "providerOptions", "experimental_providerMetadata", "id"})
_OUTPUTS = frozenset({"text", "json", "error-text", "error-json", "execution-denied", "content"})
# What each kind of part must have, under one of its names.
_NEEDED: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "text": (("text",),),
    "reasoning": (("text",),),
    "image": (("image",),),
    "file": (("data",), ("mediaType", "mimeType")),
    CALL: (("toolCallId",), ("toolName",), ("input", "args")),
    RESULT: (("toolCallId",), ("toolName",), ("output", "result")),
    REQUEST: (("approvalId",), ("toolCallId",)),
    RESPONSE: (("approvalId",), ("approved",)),
}


def check_vercel(items: Sequence[Any], *, known_only: bool = False) -> tuple[Violation, ...]:
    """Return everything in a list that the SDK would throw an error for.

    With `known_only`, a part or a key that is not known here is a violation; the SDK has new ones from time to time.
    """
    if not items:
        return (Violation("no_messages", 0, "at least one message is required"),)
    wrong = [found for place, item in enumerate(items) for found in _item_violations(item, place, known_only)]
    return (*wrong, *_Pairs().violations(items))


def _item_violations(item: object, place: int, known_only: bool) -> Iterator[Violation]:
    if not is_mapping(item):
        yield Violation("not_a_message", place, f"expected an object, got {type(item).__name__}")
        return
    role: Any = item.get("role")
    content: Any = item.get("content")
    if role not in ("system", *_PARTS):
        yield Violation("unknown_role", place, f"there is no role {role!r}")
        return
    for key in item:
        if key in ("meta", "native") or (known_only and key not in _KEYS):
            yield Violation("unknown_key", place, f"a message has no {key!r}")
    may_be = {"system": (str,), "tool": (list, tuple)}.get(str(role), (str, list, tuple))
    if not isinstance(content, may_be):
        yield Violation("wrong_content", place, f"the content of a {role} message is no {type(content).__name__}")
    elif not content:
        yield Violation("empty_content", place, f"a {role} message without content")
    for part in _parts_of(item):
        yield from _part_violations(part, str(role), place, known_only)


def _parts_of(item: object) -> Sequence[Any]:
    content = item.get("content") if is_mapping(item) else None
    return content if is_list(content) else ()


def _part_violations(part: object, role: str, place: int, known_only: bool) -> Iterator[Violation]:
    kind = kind_of(part)
    if not is_mapping(part) or not kind:
        yield Violation("wrong_part", place, "a part is an object with a type")
        return
    if kind not in _PARTS.get(role, ()) and (known_only or kind in _KNOWN):
        yield Violation("wrong_part", place, f"a part of the type {kind!r} in a {role} message")
    for names in _NEEDED.get(kind, ()):
        if not any(part.get(name) is not None or (name in _VALUES and name in part) for name in names):
            yield Violation("incomplete_part", place, f"a part of the type {kind!r} without {' or '.join(names)}")
    if kind == RESULT and "output" in part:
        output = part["output"]
        if not is_mapping(output) or output.get("type") not in _OUTPUTS:
            yield Violation("wrong_output", place, "an output has a type and a value")
        elif output["type"] in ("text", "error-text") and not isinstance(output.get("value"), str):
            yield Violation("wrong_output", place, f"the value of an output of the type {output['type']!r} is a text")


# These may be null.
_VALUES = frozenset({"input", "args", "result"})


@dataclass(slots=True)
class _Pairs:
    """Calls and what came of them: a result before the user or the system speaks, or a decision of the user."""

    open_calls: dict[str, int] = field(default_factory=dict[str, int])
    # The call that each approval was asked for.
    approvals: dict[str, str] = field(default_factory=dict[str, str])

    def violations(self, items: Sequence[Any]) -> Iterator[Violation]:
        """Yield calls without results, results without calls, and answers to what nobody asked."""
        for place, item in enumerate(items):
            role = item.get("role") if is_mapping(item) else None
            if role != "tool":
                yield from _unanswered(self.open_calls)
                self.open_calls = {}
            for part in _parts_of(item):
                yield from self._part(part, place, is_answer=role == "tool") if is_mapping(part) else ()
        yield from _unanswered(self.open_calls)

    def _part(self, part: Mapping[str, Any], place: int, *, is_answer: bool) -> Iterator[Violation]:
        call_id, approval = id_of(part), str(part.get("approvalId"))
        match kind_of(part):
            case "tool-call" if not part.get("providerExecuted"):
                if call_id in self.open_calls:
                    yield Violation("duplicate_call_id", place, f"the id {call_id!r} was used before")
                self.open_calls[call_id] = place
            case "tool-approval-request":
                self.approvals[approval] = call_id
            case "tool-approval-response":
                if approval not in self.approvals:
                    yield Violation("unknown_approval", place, f"nobody asked for {approval!r}")
                self.open_calls.pop(self.approvals.get(approval, ""), None)
            case "tool-result":
                is_known = call_id in self.open_calls or call_id in self.approvals.values()
                if is_answer and not is_known:
                    yield Violation("result_without_call", place, f"no open call has the id {call_id!r}")
                self.open_calls.pop(call_id, None)
            case _:
                pass


def _unanswered(open_calls: Mapping[str, int]) -> Iterator[Violation]:
    for call_id, place in open_calls.items():
        yield Violation("call_without_result", place, f"the call {call_id!r} has no result")
