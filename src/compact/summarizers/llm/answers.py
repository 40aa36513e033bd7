"""Read what a model has answered: a summary, or nothing, a refusal, a copy of the prompt, half of an answer."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from compact.core.errors import SummaryEchoed, SummaryEmpty, SummaryRefused, SummaryTruncated, SummaryUnreadable
from compact.core.facts.text import change_json_leaves, one_line, only_words, word_runs
from compact.core.plurals import quantity
from compact.summarizers.clients.model_client import FinishReason, ModelAnswer
from compact.summarizers.llm.delta import KNOWN_FIELDS, SummaryDelta, as_line, read_delta, without_markup

_THINKING = re.compile(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_EMPTY_OBJECT = re.compile(r"\s*(?:```(?:json)?\s*)?\{\s*\}\s*(?:```)?\s*")
_TRAILING_COMMA = re.compile(r",(?=\s*[}\]])")
# Chosen: an answer that has more braces before its JSON has none.
_MAX_BRACES = 40
_REFUSAL = re.compile(
    r"\W*(?:(?:i['’]?m|i am|we are|we['’]re) (?:very |so |really )?sorry|sorry|apologies|i apologi[sz]e|unfortunately"
    r"|as an ai\b[^.]{0,40})?[\s,.;:!-]*(?:but )?(?:i|we)(?: am|['’]m| are)?(?: just| really)? "
    r"(?:can['’]?t|can ?not|could ?n['’]?t|won['’]?t|will not|unable|not able|must decline|decline"
    r"|do not feel comfortable)\b",
    re.IGNORECASE,
)
# The constants from here on are chosen.
_MAX_REFUSAL_CHARS = 700
_MAX_QUOTED_CHARS = 200
# The transcript is compared by runs of so many words: shorter ones stand in many texts.
_TRANSCRIPT_RUN_WORDS = 8
# The instructions by shorter ones: models copy them with a word changed, and the transcript does not have them.
_INSTRUCTION_RUN_WORDS = 3
_COPIED_SHARE = 0.6
# An answer is a copy of a transcript of so many runs if it has half as many, nearly all of them its own.
_MIN_TRANSCRIPT_RUNS = 150
_TRANSCRIPT_SHARE = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerContext:
    """What an answer is checked against: the instructions, the transcript, and the message ids by their names in it."""

    instructions: str
    transcript: str
    message_ids: Mapping[str, str]


def read_answer(answer: ModelAnswer, context: AnswerContext) -> SummaryDelta:
    """Return what the model has to add; raise the kind of SummaryFailed that says what it did instead."""
    if answer.finish is FinishReason.REFUSED or answer.refusal:
        raise SummaryRefused(f"the model refused: {_quoted(answer.refusal or answer.text or 'without a word')}")
    text = _THINKING.sub("", answer.text).strip()
    if answer.finish is FinishReason.LENGTH:
        got = f"after {quantity(len(text), 'character')}" if text else "before it said anything"
        raise SummaryTruncated(f"the answer was cut off {got}", hint="give the model more room to answer")
    if not text:
        raise SummaryEmpty("the model answered nothing")
    copies = CopyDetector(context)
    data = find_json(text)
    delta = _read_prose(text, copies) if data is None else _read_structure(data, context.message_ids, copies)
    if copies.is_transcript(" ".join(delta.texts())):
        raise SummaryEchoed("the answer is a copy of the record")
    return _with_known_subjects(delta, context.transcript)


def _read_structure(data: Mapping[str, Any], message_ids: Mapping[str, str], copies: CopyDetector) -> SummaryDelta:
    delta = read_delta(copies.without_instructions(data), message_ids)
    texts = list(delta.texts())
    if not texts and any(read_delta(data, message_ids).texts()):
        raise SummaryEchoed("the answer is a copy of the instructions")
    if texts and all(map(_is_refusal, texts)):
        raise SummaryRefused(f"the model refused: {_quoted(texts[0])}")
    return delta


def _read_prose(text: str, copies: CopyDetector) -> SummaryDelta:
    if _is_refusal(text):
        raise SummaryRefused(f"the model refused: {_quoted(text)}")
    if text.startswith(("{", "```", '["', "[{")):
        if text.count("{") > text.count("}") or text.count("```") == 1:
            raise SummaryTruncated(f"the answer ends in the middle: {_quoted(text[-120:])}")
        raise SummaryUnreadable(f"the answer is not valid JSON: {_quoted(text)}")
    if copies.is_instructions(text):
        raise SummaryEchoed("the answer is a copy of the instructions")
    return SummaryDelta(narrative=without_markup(text))


def find_json(text: str) -> Mapping[str, Any] | None:
    """Return the first JSON object that looks like an answer: in a code fence, behind prose, with a comma too many."""
    for candidate in (text, _TRAILING_COMMA.sub("", text)):
        for number, start in enumerate(match.start() for match in re.finditer(r"\{", candidate)):
            if number >= _MAX_BRACES:
                break
            found = _object_at(candidate, start)
            if found is not None and KNOWN_FIELDS & set(found):
                return found
    # An empty one is an answer only if it is all there is: prose may speak of `{}`.
    return {} if _EMPTY_OBJECT.fullmatch(text) else None


def _object_at(text: str, start: int) -> Mapping[str, Any] | None:
    try:
        # Not strict: models put line ends into strings.
        found, _ = json.JSONDecoder(strict=False).raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return cast(Mapping[str, Any], found) if isinstance(found, dict) else None


def _with_known_subjects(delta: SummaryDelta, transcript: str) -> SummaryDelta:
    """Return the delta with outcomes of tools and files that the transcript names; one of anything else is a fact."""
    lowered = transcript.lower()
    outcomes = delta.tool_outcomes
    known = tuple(outcome for outcome in outcomes if outcome.tool and outcome.tool.lower() in lowered)
    others = tuple(as_line(outcome) for outcome in outcomes if outcome not in known)
    return replace(delta, tool_outcomes=known, facts=tuple(dict.fromkeys((*delta.facts, *others))))


def _is_refusal(text: str) -> bool:
    return len(text) <= _MAX_REFUSAL_CHARS and _REFUSAL.match(text) is not None


class CopyDetector:
    """Recognises what a model only gave back: words of its instructions, or the whole transcript."""

    def __init__(self, context: AnswerContext) -> None:
        transcript, instructions = context.transcript, context.instructions
        self._transcript_runs = word_runs(transcript, _TRANSCRIPT_RUN_WORDS)
        self._own_runs = word_runs(instructions, _INSTRUCTION_RUN_WORDS) - word_runs(transcript, _INSTRUCTION_RUN_WORDS)
        self._instructions, self._transcript = only_words(instructions), only_words(transcript)

    def is_instructions(self, text: str) -> bool:
        """Return True for a text that is mostly out of the instructions, in words that the transcript does not have."""
        runs = word_runs(text, _INSTRUCTION_RUN_WORDS)
        if runs:
            return len(runs & self._own_runs) >= _COPIED_SHARE * len(runs)
        words = only_words(text)
        return len(words.split()) > 1 and words in self._instructions and words not in self._transcript

    def without_instructions(self, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return JSON with such texts made empty."""
        return change_json_leaves(
            data, lambda leaf, _: "" if isinstance(leaf, str) and self.is_instructions(leaf) else leaf
        )

    def is_transcript(self, text: str) -> bool:
        """Return True for a text that is nearly all out of the transcript, and at least half as long."""
        runs, transcript = word_runs(text, _TRANSCRIPT_RUN_WORDS), self._transcript_runs
        is_long = len(transcript) >= _MIN_TRANSCRIPT_RUNS and len(runs) >= len(transcript) / 2
        return is_long and len(runs & transcript) >= _TRANSCRIPT_SHARE * len(runs)


def _quoted(text: str) -> str:
    return repr(one_line(text, _MAX_QUOTED_CHARS))
