"""Emit an event for every request to a model: how long it took, what it cost in tokens, and whether it failed."""

from __future__ import annotations

import time
from dataclasses import dataclass

from compact.core.engine.events import EventSink, SummarizerCallEvent
from compact.summarizers.clients.model_client import CompletionRequest, ModelAnswer, ModelClient


@dataclass(frozen=True, slots=True, kw_only=True)
class EventEmittingClient:
    """Asks through another client and emits an event; the telemetry that takes it fills in the session."""

    client: ModelClient
    emit: EventSink
    model: str
    provider: str

    def __call__(self, request: CompletionRequest) -> ModelAnswer:
        """Return the answer to one request."""
        started_at, clock = time.time(), time.perf_counter()
        answer, error_type = None, ""
        try:
            answer = self.client(request)
            return answer
        except BaseException as error:
            error_type = type(error).__name__
            raise
        finally:
            self.emit(
                SummarizerCallEvent(
                    session_id="",
                    started_at=started_at,
                    ended_at=started_at + time.perf_counter() - clock,
                    model=self.model,
                    provider=self.provider,
                    input_tokens=answer.input_tokens if answer else 0,
                    output_tokens=answer.output_tokens if answer else 0,
                    cache_read_tokens=int(getattr(answer, "cache_read_tokens", 0) or 0),
                    error_type=error_type,
                )
            )
