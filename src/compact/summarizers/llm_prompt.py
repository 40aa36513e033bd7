"""Puts a question to a model together: a strategy's prompt around a fenced record, always within the window."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from compact.core.errors import SummarizerUnavailable
from compact.core.facts.ledger import REQUIRED, Ledger
from compact.core.summary.summarizer import SummaryRequest
from compact.summarizers.llm_merging import Known
from compact.summarizers.llm_record import Portions, Record, clipped, fenced
from compact.summarizers.templates import Prompts

# What a chat adds to the texts in it.
_FRAMING_TOKENS = 32
_SMALLEST_ROOM_TOKENS = 64
_SHORTEST_ANSWER_TOKENS = 24
# A record that would take more parts than this is told shorter.
_MOST_PARTS = 8
_SHARES = (1.0, 0.5, 0.25, 0.1)
_END = "The record ends here. Answer with the JSON object."
_MORE = "This part of the record ends here; the rest follows in another question. Answer with the JSON object."
SAID_AROUND = f"{_END}\n{_MORE}"  # what every question says besides its template


@dataclass(frozen=True, slots=True)
class Question:
    """What is sent: `data` is the fenced part of the prompt."""

    system: str
    prompt: str
    data: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Questioner:
    """Writes the questions for one summary, for a model with a window of so many tokens."""

    prompts: Prompts
    request: SummaryRequest
    window_tokens: int
    count: Callable[[str], int]
    redact: Callable[[str], str] = lambda text: text

    @property
    def answer_tokens(self) -> int:
        """What is left of the window for the answer, and for thinking about it."""
        return min(self.window_tokens // 3, 3 * self.request.max_tokens + 4_096)

    @property
    def asked_tokens(self) -> int:
        """The length that is asked for: a little less than there is room, because models overshoot."""
        return max(_SHORTEST_ANSWER_TOKENS, min(self.request.max_tokens * 4 // 5, self.answer_tokens * 2 // 3))

    def portions(self, record: Record, known: Known) -> Portions:
        """The record in parts; cut further, the longer it is for this window."""
        room = self._room_tokens(known)
        portions = Portions(record, share=_SHARES[0], count=self.count)
        for share in _SHARES[1:]:
            if portions.total_tokens <= _MOST_PARTS * room:
                break
            portions = Portions(record, share=share, count=self.count)
        return portions

    def next(self, portions: Portions, known: Known) -> tuple[Question, int]:
        """The question about the next part of a record, and the place behind that part."""
        room = self._room_tokens(known)
        while True:
            text, place = portions.next(room)
            question = self._question(known, text, is_last=portions.is_last(place))
            excess = self.tokens(question) - (self.window_tokens - self.answer_tokens)
            if excess <= 0:
                return question, place
            room -= excess + 1
            if room < 1:
                raise self._too_small()

    def tokens(self, question: Question) -> int:
        """What a question takes."""
        return self.count(question.system) + self.count(question.prompt) + _FRAMING_TOKENS

    def _room_tokens(self, known: Known) -> int:
        bare = self.tokens(self._question(known, "", is_last=False))
        room = self.window_tokens - self.answer_tokens - bare
        if room < _SMALLEST_ROOM_TOKENS:
            raise self._too_small()
        return room

    def _too_small(self) -> SummarizerUnavailable:
        return SummarizerUnavailable(
            f"a window of {self.window_tokens:,} tokens has no room for the question itself",
            hint="use a summarizer.model with a larger window, a shorter prompt, or a smaller summarizer.max_tokens",
        )

    def _question(self, known: Known, text: str, *, is_last: bool) -> Question:
        # Characters, roughly three to a token: neither the facts nor the summary so far may crowd out the record.
        quarter = self.window_tokens * 3 // 4
        data = fenced(
            ("Kept by code", self.redact(clipped(_kept_by_code(self.request.ledger), quarter // 2))),
            ("Known so far", self.redact(clipped(known.text(), quarter))),
            ("Missing in your last answer", self.redact(clipped("\n".join(self.request.missing), quarter // 2))),
            ("Record", text),
        )
        note = f"The operator asks you to mind this: {self.request.note}" if self.request.note else ""
        history = "\n\n".join(filter(None, (note, data, _END if is_last else _MORE)))
        prompt = self.prompts.filled(self.request.form, max_tokens=self.asked_tokens, history=history)
        return Question(self.prompts.system, prompt, data)


def _kept_by_code(ledger: Ledger) -> str:
    facts = [fact for kind in reversed(REQUIRED) for fact in ledger.of(kind)]
    return "\n".join(f"- {clipped(fact.text, 600)}" for fact in facts)
