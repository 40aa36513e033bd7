"""Recognises what a model has answered: a summary, or nothing, a refusal, a copy of the question, half of an answer."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from compact.core.errors import SummaryEchoed, SummaryEmpty, SummaryRefused, SummaryTruncated, SummaryUnreadable
from compact.summarizers.llm_delta import KNOWN, Delta, as_line, plain, read_delta
from compact.summarizers.model_client import Finish, ModelAnswer

_THINKING = re.compile(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_TRAILING_COMMA = re.compile(r",(?=\s*[}\]])")
_MOST_STARTS = 40
_REFUSAL = re.compile(
    r"\W*(?:(?:i['’]?m|i am|we are|we['’]re) (?:very |so |really )?sorry|sorry|apologies|i apologi[sz]e|unfortunately"
    r"|as an ai\b[^.]{0,40})?[\s,.;:!-]*(?:but )?(?:i|we)(?: am|['’]m| are)?(?: just| really)? "
    r"(?:can['’]?t|can ?not|could ?n['’]?t|won['’]?t|will not|unable|not able|must decline|decline"
    r"|do not feel comfortable)\b",
    re.IGNORECASE,
)
_LONGEST_REFUSAL_CHARS = 700
_WORD = re.compile(r"\w+")
# Runs of so many words are compared: shorter ones are common property.
_RUN_WORDS = 8
# Of what was said to the model shorter runs tell: it copies with a word changed, and the record does not have them.
_SAID_WORDS = 3
_COPIED_SHARE = 0.6
_FEWEST_RECORD_WORDS = 150


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What an answer is held against: what was said to the model, the record it was given, and the ids in it."""

    instructions: str
    record: str
    names: Mapping[str, str]


def read_answer(answer: ModelAnswer, asked: Asked) -> Delta:
    """What the model has to add; raises the kind of SummaryFailed that says what it did instead."""
    if answer.finish is Finish.REFUSED or answer.refusal:
        raise SummaryRefused(f"the model refused: {_quoted(answer.refusal or answer.text or 'without a word')}")
    text = _THINKING.sub("", answer.text).strip()
    if answer.finish is Finish.LENGTH:
        got = f"after {len(text):,} characters" if text else "before it said anything"
        raise SummaryTruncated(f"the answer was cut off {got}", hint="give the model more room to answer")
    if not text:
        raise SummaryEmpty("the model answered nothing")
    copies = Copies(asked)
    data = find_json(text)
    delta = _prose(text, copies) if data is None else _structured(data, asked.names, copies)
    if copies.is_copy_of_record(" ".join(delta.texts())):
        raise SummaryEchoed("the answer is a copy of the record")
    return _with_known_labels(delta, asked.record)


def _structured(data: Mapping[str, Any], names: Mapping[str, str], copies: Copies) -> Delta:
    delta = read_delta(cast(Mapping[str, Any], copies.without(data)), names)
    told = list(delta.texts())
    if not told and any(read_delta(data, names).texts()):
        raise SummaryEchoed("the answer is a copy of the instructions")
    if told and all(map(_is_refusal, told)):
        raise SummaryRefused(f"the model refused: {_quoted(told[0])}")
    return delta


def _prose(text: str, copies: Copies) -> Delta:
    if _is_refusal(text):
        raise SummaryRefused(f"the model refused: {_quoted(text)}")
    if text.startswith(("{", "```", '["', "[{")):
        if text.count("{") > text.count("}") or text.count("```") == 1:
            raise SummaryTruncated(f"the answer ends in the middle: {_quoted(text[-120:])}")
        raise SummaryUnreadable(f"the answer is not valid JSON: {_quoted(text)}")
    if copies.is_copy(text):
        raise SummaryEchoed("the answer is a copy of the instructions")
    return Delta(narrative=plain(text))


def find_json(text: str) -> Mapping[str, Any] | None:
    """The first JSON object in a text that looks like an answer: in a code fence, behind prose, a comma too many."""
    for candidate in (text, _TRAILING_COMMA.sub("", text)):
        for number, start in enumerate(match.start() for match in re.finditer(r"\{", candidate)):
            if number >= _MOST_STARTS:
                break
            found = _object_at(candidate, start)
            if found is not None and (KNOWN & set(found) or not found):
                return found
    return None


def _object_at(text: str, start: int) -> Mapping[str, Any] | None:
    try:
        # Not strict: models put line ends into strings.
        found, _ = json.JSONDecoder(strict=False).raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return cast(Mapping[str, Any], found) if isinstance(found, dict) else None


def _with_known_labels(delta: Delta, record: str) -> Delta:
    """Outcomes of tools and files that the record names; one of anything else is a fact like others."""
    lowered = record.lower()
    outcomes = delta.tool_outcomes
    known = tuple(outcome for outcome in outcomes if outcome.tool and outcome.tool.lower() in lowered)
    others = tuple(as_line(outcome) for outcome in outcomes if outcome not in known)
    return replace(delta, tool_outcomes=known, facts=tuple(dict.fromkeys((*delta.facts, *others))))


def _is_refusal(text: str) -> bool:
    return len(text) <= _LONGEST_REFUSAL_CHARS and _REFUSAL.match(text) is not None


class Copies:
    """Tells what a model only gave back: words of its instructions that the record does not have, or all the record."""

    def __init__(self, asked: Asked) -> None:
        self._record = _runs(asked.record)
        self._foreign = _runs(asked.instructions, _SAID_WORDS) - _runs(asked.record, _SAID_WORDS)
        self._instructed, self._recorded = _joined(asked.instructions), _joined(asked.record)

    def is_copy(self, text: str) -> bool:
        """True for a text that is mostly out of the instructions."""
        runs = _runs(text, _SAID_WORDS)
        if runs:
            return len(runs & self._foreign) >= _COPIED_SHARE * len(runs)
        words = _joined(text)
        return len(words.split()) > 1 and words in self._instructed and words not in self._recorded

    def without(self, value: Any) -> Any:
        """JSON with such texts made empty."""
        if isinstance(value, str):
            return "" if self.is_copy(value) else value
        if isinstance(value, Mapping):
            return {key: self.without(inner) for key, inner in cast(Mapping[str, Any], value).items()}
        if isinstance(value, list):
            return [self.without(inner) for inner in cast(list[Any], value)]
        return value

    def is_copy_of_record(self, text: str) -> bool:
        """True for a text that is nearly all out of the record, and nearly as long."""
        told, record = _runs(text), self._record
        is_long = len(record) >= _FEWEST_RECORD_WORDS and len(told) >= len(record) / 2
        return is_long and len(told & record) >= 0.9 * len(told)


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


def _runs(text: str, length: int = _RUN_WORDS) -> set[tuple[str, ...]]:
    words = _words(text)
    return {tuple(words[place : place + length]) for place in range(len(words) - length + 1)}


def _joined(text: str) -> str:
    return f" {' '.join(_words(text))} "


def _quoted(text: str) -> str:
    line = " ".join(text.split())
    return repr(line if len(line) <= 200 else line[:200] + " …")
