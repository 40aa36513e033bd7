"""The model-run summariser: ask a model for what is new, part by part, and add it to what was known."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from compact.core.errors import SummaryEmpty
from compact.core.facts.text import encodable
from compact.core.messages.message import Message
from compact.core.summary.summarizer import SummarizerIdentity, SummaryRequest
from compact.core.summary.summary import StructuredSummary, render_summary_text
from compact.summarizers.clients.call_settings import CallSettings
from compact.summarizers.clients.model_client import (
    CompletionRequest,
    FinishReason,
    ModelAnswer,
    ModelClient,
    ParameterRejected,
    WindowExceeded,
)
from compact.summarizers.clients.retrying import Deadline, RetryPolicy
from compact.summarizers.llm.answers import AnswerContext, read_answer
from compact.summarizers.llm.delta import SummaryDelta
from compact.summarizers.llm.merging import (
    KnownSummary,
    fit_by_age,
    has_written_parts,
    in_order_of_messages,
    merged,
    newest_facts,
    open_facts,
    with_open_items,
    written_parts,
)
from compact.summarizers.llm.prompt import CLOSING_LINES, PromptBuilder, SummaryPrompt
from compact.summarizers.llm.templates import PromptTemplates
from compact.summarizers.llm.transcript import Transcript, entry_names
from compact.summarizers.spending import SpendLimits

_log = logging.getLogger("compact")
# Chosen: how much of a window is used after the model said that a prompt was too long for it, and when to give up.
_SHRINK = 0.6
_MIN_WINDOW_TOKENS = 1_024


class LlmSummarizer:
    """Has a model write the summary; blocks while it does, so event loops call it in a thread. Safe between threads.

    `redact`, if given, takes secrets out of every message before it is sent.
    """

    def __init__(
        self,
        client: ModelClient,
        *,
        model: str,
        window_tokens: int,
        count_text: Callable[[str], int],
        templates: PromptTemplates | None = None,
        settings: CallSettings | None = None,
        retries: RetryPolicy | None = None,
        limits: SpendLimits | None = None,
        redact: Callable[[Message], Message] | None = None,
    ) -> None:
        self.model = model
        self._limits = limits or SpendLimits()
        self._client, self._count = client, count_text
        self._window_tokens = window_tokens
        self._templates = templates or PromptTemplates.load()
        self._settings = settings or CallSettings()
        self._retries = retries or RetryPolicy()
        self._redact = redact
        self._settings_fingerprint = self._settings.fingerprint()

    def identity(self, form: str) -> SummarizerIdentity:
        """Return the model, and the version of its instructions: two summaries of one span differ if these do."""
        return SummarizerIdentity(f"{self.model} {self._settings_fingerprint}", self._templates.version(form))

    def __call__(self, request: SummaryRequest, /) -> StructuredSummary:
        """Return the summary before with what is new in it.

        Raises SummaryFailed, or ConfigError for a missing package.
        """
        span = request.span or request.messages
        all_open, before = open_facts(request), written_parts(request.previous)
        shown_open = newest_facts(all_open)
        known = self._read(request, entry_names(span), KnownSummary(before, shown_open))
        written = fit_by_age(known.written, before, lambda candidate: _fits(candidate, request))
        if not has_written_parts(written):
            raise SummaryEmpty("the model found nothing to summarise")
        if request.form == "decision_log":
            places = {message.id: place for place, message in enumerate(span)}
            written = replace(written, decisions=in_order_of_messages(written.decisions, places))
        still_open = (*(fact for fact in all_open if fact not in shown_open), *known.open_facts)
        return replace(written, ledger=with_open_items(request.ledger, still_open))

    def _read(self, request: SummaryRequest, names: Mapping[str, str], known: KnownSummary) -> KnownSummary:
        """Have the model read the new messages part by part; return what is known then."""
        deadline = self._retries.start()
        transcript = Transcript(self._redacted(request.messages), names)
        parts = self._prompts(request).parts(transcript, known)
        message_ids = {name: message_id for message_id, name in names.items()}
        start = 0
        while not parts.is_end(start):
            prompt = self._prompts(request).build(parts, start, known)
            try:
                delta = self._ask(prompt, request, message_ids, deadline)
            except WindowExceeded as error:
                self._shrink_window(error)
                continue
            known, start = merged(known, delta), prompt.end
        return known

    def _redacted(self, messages: Sequence[Message]) -> Sequence[Message]:
        redact = self._redact
        return messages if redact is None else [redact(message) for message in messages]

    def _prompts(self, request: SummaryRequest) -> PromptBuilder:
        redact = self._redact
        return PromptBuilder(
            templates=self._templates,
            request=request,
            window_tokens=self._window_tokens,
            count=self._count,
            redact=(lambda text: redact(Message("user", text)).text) if redact else lambda text: text,
        )

    def _ask(
        self, prompt: SummaryPrompt, request: SummaryRequest, message_ids: Mapping[str, str], deadline: Deadline
    ) -> SummaryDelta:
        answer = self._answer(prompt, request, deadline)
        instructions = f"{self._templates.instructions(request.form)}\n{CLOSING_LINES}"
        context = AnswerContext(instructions=instructions, transcript=prompt.data, message_ids=message_ids)
        return read_answer(answer, context)

    def _answer(self, prompt: SummaryPrompt, request: SummaryRequest, deadline: Deadline) -> ModelAnswer:
        """Return the model's answer, asked again without what it does not take and without a limit that cut it off."""
        tokens = self._count(prompt.system) + self._count(prompt.text)

        def call(sent: CompletionRequest) -> ModelAnswer:
            self._limits.count_call(request, input_tokens=tokens, output_tokens=request.max_tokens)
            return self._client(sent)

        while True:
            sent = CompletionRequest(
                system=prompt.system,
                prompt=encodable(prompt.text),
                settings=self._settings.current(),
                timeout_seconds=deadline.remaining_seconds,
            )
            try:
                answer = deadline.ask(call, sent)
            except ParameterRejected as error:
                if self._settings.drop(error.name):
                    continue
                raise
            self._limits.add(
                request,
                input_tokens=answer.input_tokens or tokens,
                output_tokens=answer.output_tokens or self._count(answer.text),
            )
            if answer.finish is not FinishReason.LENGTH or not self._settings.drop_limit(sent.settings):
                return answer

    def _shrink_window(self, error: WindowExceeded) -> None:
        """Use less of the window from now on: our count of its tokens, or what we know of its size, was wrong."""
        smaller = int(self._window_tokens * _SHRINK)
        if smaller < _MIN_WINDOW_TOKENS:
            raise error
        _log.warning("%s tokens are too much for %s: going on with %s", self._window_tokens, self.model, smaller)
        self._window_tokens = smaller


def _fits(summary: StructuredSummary, request: SummaryRequest) -> bool:
    text = render_summary_text(summary, version=request.version, messages=len(request.span))
    return request.count_text(text) <= request.max_tokens
