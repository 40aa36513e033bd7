"""Answers calls of the recall tool while a response passes: asks the provider again, and joins the answers to one."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any

from compact.adapters.support.endpoints import write_body
from compact.adapters.support.recall import answer_recall
from compact.core.plurals import quantity
from compact.proxy.recall.answer import Answer, HiddenCall, mapping, read_object
from compact.proxy.recall.anthropic import AnthropicAnswer
from compact.proxy.recall.chat import ChatAnswer
from compact.proxy.recall.event_stream import EventSplitter
from compact.proxy.recall.exchanges import ExchangeMemory
from compact.proxy.recall.offer import RecallOffer
from compact.proxy.recall.responses import ResponsesAnswer
from compact.proxy.upstream import Response, UpstreamError
from compact.proxy.usage import UsageReader
from compact.runner import run_blocking

_log = logging.getLogger("compact.proxy")
# Chosen: a model that has not found it after as many attempts goes round in circles.
MOST_ROUNDS = 4
# Chosen: what `manager.recall` returns at most if nobody says otherwise; less where less room is left.
_MOST_TOKENS = 2_000
# Chosen: an answer that is shorter says nothing.
_FEWEST_TOKENS = 50
# Chosen: the fewest characters that a token has on average; tables of numbers come near it.
_CHARS_PER_TOKEN = 2
# Chosen: the rest is left for how the provider counts and frames what is recalled.
_USED_SHARE = 0.8
# A comment, which clients skip: a stream has no header that could say it later.
ANSWERED = b": compact answered a call of recall\n\n"
_NO_MORE = f"recall was called {quantity(MOST_ROUNDS, 'time')} in a row; go on with what you know"
_NO_ROOM = "nothing can be read now: the context window is full; go on with what you know"

Resend = Callable[[bytes], Awaitable[Response]]


class RecallRounds:
    """The responses to one request that offers the tool, as one answer to the agent."""

    def __init__(self, offer: RecallOffer, memory: ExchangeMemory, resend: Resend) -> None:
        self._offer, self._memory, self._resend = offer, memory, resend
        self._answer = _ANSWERS[offer.endpoint.dialect](offer)
        self._added: list[Any] = []
        # The results of each round's hidden calls.
        self._results: list[Mapping[str, str]] = []
        self._is_kept = False

    @property
    def answered(self) -> int:
        """How many calls were answered."""
        return sum(map(len, self._results))

    async def stream(self, response: Response, reader: UsageReader) -> AsyncGenerator[bytes]:
        """Yield a stream for the agent, event by event; `reader` reads the usage of the first response."""
        while True:
            async with aclosing(response):
                async for passed in self._stream_round(response, reader if not self._results else None):
                    yield passed
            if not await self._goes_on():
                yield self._answer.end()
                return
            yield ANSWERED
            try:
                response = await self._next_round()
            except UpstreamError as error:
                _log.warning("the upstream cannot be reached after a recall (%s)", type(error).__name__)
                yield self._answer.error(502, _own_error(f"the upstream cannot be reached: {error}"))
                return
            if response.status_code != 200 or not _is_stream(response):
                yield await self._error_event(response)
                return

    async def _stream_round(self, response: Response, reader: UsageReader | None) -> AsyncGenerator[bytes]:
        splitter, answer = EventSplitter(), self._answer
        async with aclosing(response.aiter_bytes()) as parts:
            async for part in parts:
                if reader:
                    reader.feed(part)
                passed = b"".join([self._fed(answer, event) for event in splitter.feed(part)])
                if passed:
                    yield passed
        if splitter.rest():
            yield splitter.rest()

    def _fed(self, answer: Answer, event: Any) -> bytes:
        passed = answer.feed(event)
        # Before the agent sees the end of its own call, and may send its result.
        if self._results and answer.round.own_call_ids and not answer.round.hidden:
            self._keep()
        return passed

    async def whole(self, response: Response, reader: UsageReader) -> tuple[Response, bytes]:
        """Return a whole response for the agent: the body, and the response that has its status and headers."""
        while True:
            async with aclosing(response):
                raw = await response.aread()
            if not self._results:
                reader.feed(raw)
                reader.end()
            body = read_object(raw) if response.status_code == 200 else None
            if body is None:
                return response, raw
            self._answer.take(body)
            if not await self._goes_on():
                if self._results and self._answer.round.own_call_ids:
                    self._keep()
                return response, write_body(self._answer.whole()) if self._answer.is_changed else raw
            response = await self._next_round()

    async def _goes_on(self) -> bool:
        """Answer the hidden calls of a round that is complete; return True if the provider must be asked again."""
        current = self._answer.round
        if not current.hidden or not current.ends_with_calls:
            return False
        results = {call.call_id: await self._result(call) for call in current.hidden}
        self._results.append(results)
        _log.info(
            "%s answered for session %s",
            quantity(len(results), "call of recall", "calls of recall"),
            self._offer.session_id,
        )
        if current.own_call_ids:
            self._keep()
            return False
        return True

    async def _next_round(self) -> Response:
        answer = self._answer
        self._added += [*answer.model_items(), *answer.result_items(self._results[-1])]
        may_recall = len(self._results) <= MOST_ROUNDS
        answer.begin_round(hides=may_recall)
        body = self._offer.next_body(self._added, with_tool=may_recall)
        return await self._resend(write_body(body))

    def _keep(self) -> None:
        if not self._is_kept:
            self._memory.keep(self._offer.session_id, self._answer, self._results)
            self._is_kept = True

    async def _result(self, call: HiddenCall) -> str:
        if len(self._results) >= MOST_ROUNDS:
            return _NO_MORE
        offer, taken = self._offer, len(json.dumps(self._added)) // _CHARS_PER_TOKEN

        def recall() -> str:
            room = min(_MOST_TOKENS, (_room_tokens(offer) - taken) // len(self._answer.round.hidden))
            if room < _FEWEST_TOKENS:
                return _NO_ROOM
            return answer_recall(offer.manager, offer.session_id, call.arguments, max_tokens=room)

        return await run_blocking(recall)

    async def _error_event(self, response: Response) -> bytes:
        """Return an error of a later round in the form of the stream that has begun."""
        async with aclosing(response):
            try:
                raw = await response.aread()
            except UpstreamError:
                raw = b""
        status = response.status_code
        _log.warning("the upstream answered with status %d after a recall", status)
        error = dict(mapping((read_object(raw) or {}).get("error")))
        return self._answer.error(status, error or _own_error(f"the upstream answered with status {status}"))


def _room_tokens(offer: RecallOffer) -> int:
    """Return how many tokens the prompt may still grow."""
    status = offer.manager.status(offer.session_id)
    return int((status.thresholds["ceiling"] - status.used_tokens) * _USED_SHARE)


def _own_error(text: str) -> dict[str, Any]:
    return {"type": "api_error", "code": "upstream_unreachable", "message": f"compact proxy: {text}"}


def _is_stream(response: Response) -> bool:
    return response.headers.get("content-type", "").split(";")[0].strip().lower() == "text/event-stream"


def _responses_answer(offer: RecallOffer) -> Answer:
    return ResponsesAnswer(is_stored=offer.body.get("store") is not False)


_ANSWERS: Mapping[str, Callable[[RecallOffer], Answer]] = {
    "chat": lambda offer: ChatAnswer(),
    "anthropic": lambda offer: AnthropicAnswer(),
    "responses": _responses_answer,
}
