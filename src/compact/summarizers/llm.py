"""The model-run summariser: asks a model for what is new, part by part, and adds it to what was known."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from compact.core.errors import SummaryEmpty
from compact.core.log.messages import Message
from compact.core.summary.summarizer import SummarizerIdentity, SummaryRequest
from compact.core.summary.summary import StructuredSummary, render_summary_text
from compact.summarizers.call_settings import CallSettings
from compact.summarizers.llm_answers import Asked, read_answer
from compact.summarizers.llm_delta import Delta
from compact.summarizers.llm_merging import (
    Known,
    code_open,
    fitted,
    in_order,
    is_told,
    ledger_with,
    merged,
    newest,
    told_parts,
)
from compact.summarizers.llm_prompt import SAID_AROUND, Question, Questioner
from compact.summarizers.llm_record import Record, step_ids
from compact.summarizers.model_client import (
    Finish,
    ModelAnswer,
    ModelClient,
    ModelRequest,
    ParameterRejected,
    WindowExceeded,
)
from compact.summarizers.retrying import Deadline, Patience
from compact.summarizers.spending import SpendLimits
from compact.summarizers.templates import Prompts

_log = logging.getLogger("compact")
# How much of a window is believed in after the model said that a question was too long for it.
_SHRINK = 0.6
_SMALLEST_WINDOW_TOKENS = 1_024


class LlmSummarizer:
    """Has a model tell what happened; blocks while it does, so doors call it off their loops. Safe between threads.

    `redact`, if given, takes secrets out of every message before it is sent.
    """

    def __init__(
        self,
        client: ModelClient,
        *,
        model: str,
        window_tokens: int,
        count_text: Callable[[str], int],
        prompts: Prompts | None = None,
        settings: CallSettings | None = None,
        patience: Patience | None = None,
        limits: SpendLimits | None = None,
        redact: Callable[[Message], Message] | None = None,
    ) -> None:
        self.model = model
        self._limits = limits or SpendLimits()
        self._client, self._count = client, count_text
        self._window_tokens = window_tokens
        self._prompts = prompts or Prompts.load()
        self._settings = settings or CallSettings()
        self._patience = patience or Patience()
        self._redact = redact
        self._asked_with = self._settings.fingerprint()

    def identity(self, form: str) -> SummarizerIdentity:
        """Return the model, and the version of what is said to it: two summaries of one span differ if these do."""
        return SummarizerIdentity(f"{self.model} {self._asked_with}", self._prompts.version(form))

    def __call__(self, request: SummaryRequest, /) -> StructuredSummary:
        """Return the summary before with what is new in it.

        Raises SummaryFailed, or ConfigError for a missing package.
        """
        deadline = self._patience.started()
        span = request.span or request.messages
        names = step_ids(span)
        record = Record(self._cleaned(request.messages), names)
        all_open = code_open(request)
        shown = newest(all_open)
        before = told_parts(request.previous)
        known = Known(before, shown)
        portions = self._questioner(request).portions(record, known)
        ids = {name: message_id for message_id, name in names.items()}
        while not portions.is_told:
            question, place = self._questioner(request).next(portions, known)
            try:
                delta = self._asked(question, request, ids, deadline)
            except WindowExceeded as error:
                self._believe_in_less(error)
                continue
            known, portions.place = merged(known, delta), place
        told = fitted(known.told, before, lambda candidate: _fits(candidate, request))
        if not is_told(told):
            raise SummaryEmpty("the model found nothing to tell")
        if request.form == "decision_log":
            places = {message.id: place for place, message in enumerate(span)}
            told = replace(told, decisions=in_order(told.decisions, places))
        still_open = (*(fact for fact in all_open if fact not in shown), *known.code_open)
        return replace(told, ledger=ledger_with(request.ledger, still_open))

    def _cleaned(self, messages: Sequence[Message]) -> Sequence[Message]:
        redact = self._redact
        return messages if redact is None else [redact(message) for message in messages]

    def _questioner(self, request: SummaryRequest) -> Questioner:
        redact = self._redact
        return Questioner(
            prompts=self._prompts,
            request=request,
            window_tokens=self._window_tokens,
            count=self._count,
            redact=(lambda text: redact(Message("user", text)).text) if redact else lambda text: text,
        )

    def _asked(self, question: Question, request: SummaryRequest, ids: dict[str, str], deadline: Deadline) -> Delta:
        answer = self._answer(question, request, deadline)
        instructions = f"{self._prompts.instructions(request.form)}\n{SAID_AROUND}"
        return read_answer(answer, Asked(instructions=instructions, record=question.data, names=ids))

    def _answer(self, question: Question, request: SummaryRequest, deadline: Deadline) -> ModelAnswer:
        """The model's answer, asked again without what it does not take and without a limit that cut it off."""
        tokens = self._count(question.system) + self._count(question.prompt)
        while True:
            self._limits.check(request, input_tokens=tokens, output_tokens=request.max_tokens)
            asked = ModelRequest(
                system=question.system,
                prompt=_encodable(question.prompt),
                settings=self._settings.current(),
                timeout_seconds=deadline.remaining_seconds,
            )
            try:
                answer = deadline.ask(self._client, asked)
            except ParameterRejected as error:
                if self._settings.drop(error.name):
                    continue
                raise
            self._limits.add(
                request,
                input_tokens=answer.input_tokens or tokens,
                output_tokens=answer.output_tokens or self._count(answer.text),
            )
            if answer.finish is not Finish.LENGTH or not self._settings.drop_limit(asked.settings):
                return answer

    def _believe_in_less(self, error: WindowExceeded) -> None:
        """Our count of the model's tokens, or what we know of its window, was wrong: from now on parts are smaller."""
        smaller = int(self._window_tokens * _SHRINK)
        if smaller < _SMALLEST_WINDOW_TOKENS:
            raise error
        _log.warning("%s tokens are too much for %s: going on with %s", self._window_tokens, self.model, smaller)
        self._window_tokens = smaller


def _encodable(text: str) -> str:
    """Return a text that can be sent: half a surrogate pair, as tools print it, is no character of any encoding."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _fits(told: StructuredSummary, request: SummaryRequest) -> bool:
    text = render_summary_text(told, version=request.version, messages=len(request.span))
    return request.count_text(text) <= request.max_tokens
