"""What the Gemini API answers with 400."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from compact.core.log.legality import Violation
from compact.dialects.gemini_parts import CALL, RESPONSE, SIGNATURE, found, plain_content

_ROLES = ("user", "model", "function", "tool", None)
# The one thing that a part is, and what may be said about it.
_DATA = frozenset(
    {"text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode", "codeExecutionResult"}
    | {"toolCall", "toolResponse", "audioTranscription"}
)
_ABOUT = frozenset(
    {"thought", "thoughtSignature", "videoMetadata", "mediaResolution", "partMetadata", "mediaProcessing"}
    | {"speechMetadata"}
)
_FUNCTION_KEYS = frozenset({"id", "name", "args", "partialArgs", "willContinue"})
_RESPONSE_KEYS = frozenset({"id", "name", "response", "parts", "scheduling", "willContinue"})


def check_gemini(items: Sequence[Any], *, alternating: bool = False) -> tuple[Violation, ...]:
    """Every rule of the Gemini API that a list breaks; with `alternating`, two neighbours of one role are one too.

    A turn of responses followed by the user's words is none: that is how the words after a tool are said.
    """
    contents = [plain_content(item)[0] for item in items]
    wrong = [found for place, content in enumerate(contents) for found in _content_violations(content, place)]
    return (*wrong, *_order_violations(contents, alternating))


def _content_violations(content: Mapping[str, Any], place: int) -> Iterator[Violation]:
    for key in content.keys() - {"role", "parts"}:
        yield Violation("unknown_key", place, f"a content has no {key!r}")
    if content.get("role") not in _ROLES:
        yield Violation("unknown_role", place, f"there is no role {content.get('role')!r}")
    parts = content.get("parts")
    if not isinstance(parts, list) or not parts:
        yield Violation("empty_content", place, "a content without parts")
        return
    for part in parts:
        if not isinstance(part, dict):
            yield Violation("not_a_part", place, "a part is an object")
            return
        yield from _part_violations(part, place)
        if (found(part, CALL) and content.get("role") != "model") or (
            found(part, RESPONSE) and content.get("role") == "model"
        ):
            yield Violation("wrong_role", place, "calls are the model's, responses the user's")


def _part_violations(part: Mapping[str, Any], place: int) -> Iterator[Violation]:
    keys = {_camel(key) for key, value in part.items() if value is not None}
    for key in keys - _DATA - _ABOUT:
        yield Violation("unknown_key", place, f"a part has no {key!r}")
    if len(keys & _DATA) != 1:
        yield Violation("not_a_part", place, f"a part is one thing, not {len(keys & _DATA)}")
    if part.get("text") == "" and not found(part, SIGNATURE):
        yield Violation("empty_content", place, "a part with an empty text")
    for names, known in ((CALL, _FUNCTION_KEYS), (RESPONSE, _RESPONSE_KEYS)):
        named = found(part, names)
        if not named:
            continue
        inner = named[1]
        for key in {_camel(key) for key in inner} - known:
            yield Violation("unknown_key", place, f"a {named[0]} has no {key!r}")
        if not inner.get("name"):
            yield Violation("incomplete_call", place, f"a {named[0]} without a name")
        if not isinstance(inner.get("args" if names is CALL else "response", {}) or {}, dict):
            yield Violation("incomplete_call", place, f"what a {named[0]} says is an object")


def _camel(key: str) -> str:
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
        calls, responses = _named(content, CALL), _named(content, RESPONSE)
        if responses or open_calls:
            yield from _response_violations(open_calls, responses, place)
        before = contents[place - 1] if place else {}
        is_same = bool(before) and (before.get("role") == "model") == (content.get("role") == "model")
        if calls and (is_same or not before):
            yield Violation("call_turn", place, "a turn of calls comes right behind a turn of the user or of responses")
        if alternating and is_same and not (_named(before, RESPONSE) and not responses):
            yield Violation("alternation", place, f"two turns of the {content.get('role')} in a row")
        open_calls = calls
    for call in open_calls:
        yield Violation("call_without_result", len(contents) - 1, f"the call of {call.get('name')!r} has no response")


def _named(content: Mapping[str, Any], names: Sequence[str]) -> list[Mapping[str, Any]]:
    parts = content.get("parts")
    listed = (found(part, names) for part in parts if isinstance(part, dict)) if isinstance(parts, list) else ()
    return [named[1] for named in listed if named]


def _response_violations(
    calls: Sequence[Mapping[str, Any]], responses: Sequence[Mapping[str, Any]], place: int
) -> Iterator[Violation]:
    """As many responses as calls, of the same names, and with the ids that both have."""
    if not calls:
        yield Violation("result_without_call", place, "a turn of responses comes right behind a turn of calls")
        return
    if len(calls) != len(responses):
        yield Violation("response_count", place, f"{len(calls)} calls, {len(responses)} responses")
    if Counter(call.get("name") for call in calls) != Counter(one.get("name") for one in responses):
        yield Violation("response_names", place, "the responses are of other functions than the calls")
    ids, answered = ([one["id"] for one in both if one.get("id")] for both in (calls, responses))
    if ids and answered and Counter(ids) != Counter(answered):
        yield Violation("response_ids", place, "the responses have other ids than the calls")
