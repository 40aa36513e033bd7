"""Build the requests for one summary: a template around a fenced part of the transcript, always within the window."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from compact.core.errors import SummarizerUnavailable
from compact.core.facts.ledger import REQUIRED, Ledger
from compact.core.summary.summarizer import SummaryRequest
from compact.summarizers.llm.merging import KnownSummary
from compact.summarizers.llm.templates import PromptTemplates
from compact.summarizers.llm.transcript import Transcript, TranscriptParts, clipped, fenced

# Chosen: what a chat adds to the texts in it, on the safe side.
_FRAMING_TOKENS = 32
# Chosen: with less room for the transcript, or for the answer, nothing useful comes back.
_MIN_ROOM_TOKENS = 64
_MIN_ANSWER_TOKENS = 24
# Chosen: room for an answer three times as long as asked for, and for thinking about it.
_THINKING_TOKENS = 4_096
# Chosen: a transcript that would take more requests than this is written shorter, by the next of these shares.
_MAX_PARTS = 8
_SHARES = (1.0, 0.5, 0.25, 0.1)
# Chosen: the most characters of a required fact that the model is shown.
_MAX_FACT_CHARS = 600
_END = "The record ends here. Answer with the JSON object."
_MORE = "This part of the record ends here; the rest follows in another question. Answer with the JSON object."
_FOCUS = "Keep first, with every detail, whatever has to do with this: {}\nBe as short as you can about the rest."
CLOSING_LINES = f"{_END}\n{_MORE}"  # what a prompt says besides its template


@dataclass(frozen=True, slots=True)
class SummaryPrompt:
    """What is sent for one part of a transcript: `data` is the fenced part of `text`, `end` the group behind it."""

    system: str
    text: str
    data: str
    end: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptBuilder:
    """Builds the prompts for one summary, for a model with a window of so many tokens."""

    templates: PromptTemplates
    request: SummaryRequest
    window_tokens: int
    count: Callable[[str], int]
    redact: Callable[[str], str] = lambda text: text

    @property
    def answer_tokens(self) -> int:
        """What is left of the window for the answer, and for thinking about it."""
        return min(self.window_tokens // 3, 3 * self.request.max_tokens + _THINKING_TOKENS)

    @property
    def asked_tokens(self) -> int:
        """The length that is asked for: a little less than there is room, because models overshoot."""
        return max(_MIN_ANSWER_TOKENS, min(self.request.max_tokens * 4 // 5, self.answer_tokens * 2 // 3))

    def parts(self, transcript: Transcript, known: KnownSummary) -> TranscriptParts:
        """Return the transcript in parts; its texts are cut more, the longer it is for this window."""
        room = self._room_tokens(known)
        parts = TranscriptParts(transcript, share=_SHARES[0], count=self.count)
        for share in _SHARES[1:]:
            if parts.total_tokens <= _MAX_PARTS * room:
                break
            parts = TranscriptParts(transcript, share=share, count=self.count)
        return parts

    def build(self, parts: TranscriptParts, start: int, known: KnownSummary) -> SummaryPrompt:
        """Return the prompt about the part of a transcript that begins at a place."""
        room = self._room_tokens(known)
        while True:
            part = parts.part(start, room)
            prompt = self._prompt(known, part.text, end=part.end, is_last=parts.is_end(part.end))
            excess = self.tokens(prompt) - (self.window_tokens - self.answer_tokens)
            if excess <= 0:
                return prompt
            room -= excess + 1
            if room < 1:
                raise self._too_small()

    def tokens(self, prompt: SummaryPrompt) -> int:
        """Return what a prompt takes."""
        return self.count(prompt.system) + self.count(prompt.text) + _FRAMING_TOKENS

    def _room_tokens(self, known: KnownSummary) -> int:
        bare = self.tokens(self._prompt(known, "", end=0, is_last=False))
        room = self.window_tokens - self.answer_tokens - bare
        if room < _MIN_ROOM_TOKENS:
            raise self._too_small()
        return room

    def _too_small(self) -> SummarizerUnavailable:
        return SummarizerUnavailable(
            f"a window of {self.window_tokens:,} tokens has no room for the question itself",
            hint="use a summarizer.model with a larger window, a shorter prompt, or a smaller summarizer.max_tokens",
        )

    def _prompt(self, known: KnownSummary, transcript: str, *, end: int, is_last: bool) -> SummaryPrompt:
        # Characters, roughly three to a token: neither the facts nor the summary so far may crowd out the transcript.
        quarter = self.window_tokens * 3 // 4
        data = fenced(
            ("Kept by code", self.redact(clipped(_required_facts(self.request.ledger), quarter // 2))),
            ("Known so far", self.redact(clipped(known.text(), quarter))),
            ("Missing in your last answer", self.redact(clipped("\n".join(self.request.missing), quarter // 2))),
            ("Record", transcript),
        )
        note = f"The operator asks you to mind this: {self.redact(self.request.note)}" if self.request.note else ""
        focus = _FOCUS.format(self.redact(clipped(self.request.focus, _MAX_FACT_CHARS))) if self.request.focus else ""
        history = "\n\n".join(filter(None, (note, focus, data, _END if is_last else _MORE)))
        text = self.templates.fill(self.request.form, max_tokens=self.asked_tokens, history=history)
        return SummaryPrompt(self.templates.system, text, data, end)


def _required_facts(ledger: Ledger) -> str:
    facts = [fact for kind in reversed(REQUIRED) for fact in ledger.of(kind)]
    return "\n".join(f"- {clipped(fact.text, _MAX_FACT_CHARS)}" for fact in facts)
