"""What the Gemini API answers with 400."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from compact.core.messages.legality import Violation
from compact.core.plurals import quantity
from compact.dialects.dialect import fields_of
from compact.dialects.gemini_parts import (
    CALL_KEYS,
    RESPONSE_KEYS,
    SIGNATURE_KEYS,
    Part,
    find_field,
    read_json_content,
)

_ROLES = ("user", "model", "function", "tool", None)
# The one thing that a part is, and what it may have besides.
_DATA = frozenset(
    {"text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode", "codeExecutionResult"}
    | {"toolCall", "toolResponse", "audioTranscription"}
)
_ATTRIBUTES = frozenset(
    {"thought", "thoughtSignature", "videoMetadata", "mediaResolution", "partMetadata", "mediaProcessing"}
    | {"speechMetadata"}
)
_FUNCTION_KEYS = frozenset({"id", "name", "args", "partialArgs", "willContinue"})
_RESPONSE_KEYS = frozenset({"id", "name", "response", "parts", "scheduling", "willContinue"})


def check_gemini(items: Sequence[Any], *, alternating: bool = False) -> tuple[Violation, ...]:
    """Return every rule of the Gemini API that a list breaks; with `alternating`, two neighbours of one role are one.

    A turn of responses followed by the user's words is none: that is how the words after a tool are said.
    """
    contents = [read_json_content(item).fields for item in items]
    wrong = [each for place, content in enumerate(contents) for each in _content_violations(content, place)]
    return (*wrong, *_order_violations(contents, alternating))


def _content_violations(content: Mapping[str, Any], place: int) -> Iterator[Violation]:
    for key in content.keys() - {"role", "parts"}:
        yield Violation("unknown_key", place, f"a content has no {key!r}")
    role = content.get("role")
    if role not in _ROLES:
        yield Violation("unknown_role", place, f"there is no role {role!r}")
    parts = _parts_of(content)
    if not parts:
        yield Violation("empty_content", place, "a content without parts")
    for part in parts:
        if not isinstance(part, dict):
            yield Violation("not_a_part", place, "a part is an object")
            return
        fields = cast(Part, part)
        yield from _part_violations(fields, place)
        if find_field(fields, RESPONSE_KEYS if role == "model" else CALL_KEYS):
            yield Violation("wrong_role", place, "calls are the model's, responses the user's")


def _parts_of(content: Mapping[str, Any]) -> Sequence[object]:
    parts = content.get("parts")
    return cast(Sequence[object], parts) if isinstance(parts, list) else ()


def _part_violations(part: Part, place: int) -> Iterator[Violation]:
    keys = {_camel_case(key) for key, value in part.items() if value is not None}
    for key in keys - _DATA - _ATTRIBUTES:
        yield Violation("unknown_key", place, f"a part has no {key!r}")
    if len(keys & _DATA) != 1:
        yield Violation("not_a_part", place, f"a part is one thing, not {len(keys & _DATA)}")
    if part.get("text") == "" and not find_field(part, SIGNATURE_KEYS):
        yield Violation("empty_content", place, "a part with an empty text")
    yield from _function_violations(part, CALL_KEYS, _FUNCTION_KEYS, "args", place)
    yield from _function_violations(part, RESPONSE_KEYS, _RESPONSE_KEYS, "response", place)


def _function_violations(
    part: Part, names: Sequence[str], known: frozenset[str], payload: str, place: int
) -> Iterator[Violation]:
    """Yield what is wrong with the call or the response that a part is, if it is one."""
    named = find_field(part, names)
    if named is None:
        return
    inner = fields_of(named.value)
    if not inner:
        yield Violation("incomplete_call", place, f"a {named.name} is an object")
        return
    for key in {_camel_case(key) for key in inner} - known:
        yield Violation("unknown_key", place, f"a {named.name} has no {key!r}")
    if not inner.get("name"):
        yield Violation("incomplete_call", place, f"a {named.name} without a name")
    if not isinstance(inner.get(payload) or {}, dict):
        yield Violation("incomplete_call", place, f"the {payload} of a {named.name} is an object")


def _camel_case(key: str) -> str:
    first, *others = key.split("_")
    return first + "".join(word.capitalize() for word in others)


def _order_violations(contents: Sequence[Mapping[str, Any]], alternating: bool) -> Iterator[Violation]:
    if not contents:
        yield Violation("no_contents", 0, "at least one content is required")
        return
    if contents[0].get("role") == "model":
        yield Violation("first_turn", 0, "the first turn must be the user's")
    open_calls: list[Mapping[str, Any]] = []
    for place, content in enumerate(contents):
        calls, responses = _functions(content, CALL_KEYS), _functions(content, RESPONSE_KEYS)
        if responses or open_calls:
            yield from _response_violations(open_calls, responses, place)
        before: Mapping[str, Any] = contents[place - 1] if place else {}
        is_same = bool(before) and (before.get("role") == "model") == (content.get("role") == "model")
        if calls and (is_same or not before):
            yield Violation("call_turn", place, "a turn of calls comes right behind a turn of the user or of responses")
        if alternating and is_same and not (_functions(before, RESPONSE_KEYS) and not responses):
            yield Violation("alternation", place, f"two turns of the {content.get('role')} in a row")
        open_calls = calls
    for call in open_calls:
        yield Violation("call_without_result", len(contents) - 1, f"the call of {call.get('name')!r} has no response")


def _functions(content: Mapping[str, Any], names: Sequence[str]) -> list[Mapping[str, Any]]:
    """Return the calls, or the responses, of a content."""
    named = [find_field(cast(Part, part), names) for part in _parts_of(content) if isinstance(part, dict)]
    return [fields_of(each.value) for each in named if each]


def _response_violations(
    calls: Sequence[Mapping[str, Any]], responses: Sequence[Mapping[str, Any]], place: int
) -> Iterator[Violation]:
    """Yield what is wrong with responses: as many as calls, of the same names, and with the ids that both have."""
    if not calls:
        yield Violation("result_without_call", place, "a turn of responses comes right behind a turn of calls")
        return
    if len(calls) != len(responses):
        yield Violation(
            "response_count", place, f"{quantity(len(calls), 'call')}, {quantity(len(responses), 'response')}"
        )
    if Counter(str(call.get("name")) for call in calls) != Counter(str(one.get("name")) for one in responses):
        yield Violation("response_names", place, "the responses are of other functions than the calls")
    ids, answered = ([str(one["id"]) for one in both if one.get("id")] for both in (calls, responses))
    if ids and answered and Counter(ids) != Counter(answered):
        yield Violation("response_ids", place, "the responses have other ids than the calls")
