"""The socket for clients of models: one request in, one answer out; and what can go wrong in between."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

from compact.core.errors import SummarizerUnavailable


class FinishReason(Enum):
    """Why a model stopped."""

    DONE = "done"
    LENGTH = "length"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionRequest:
    """One request to a model; `settings` are the parameters of the call by their names on the wire."""

    system: str
    prompt: str
    timeout_seconds: float
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswer:
    """What came back; tokens are those the provider reports, 0 if it reports none."""

    text: str
    finish: FinishReason = FinishReason.DONE
    refusal: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0


class ModelClient(Protocol):
    """Asks a model once. It does not try again by itself, and raises `SummaryFailed`, or ConfigError."""

    def __call__(self, request: CompletionRequest) -> ModelAnswer:
        """Return the answer to one request."""
        ...


class ModelBusy(SummarizerUnavailable):
    """The model may be asked again, after `retry_after_seconds` if it said when."""

    code = "model_busy"

    def __init__(self, message: str, *, retry_after_seconds: float | None = None, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.retry_after_seconds = retry_after_seconds


class ParameterRejected(SummarizerUnavailable):
    """The endpoint does not take a parameter; `name` is its name on the wire."""

    code = "parameter_rejected"

    def __init__(self, message: str, *, name: str) -> None:
        super().__init__(message, hint=f"set summarizer.{name} or summarizer.options to what this model takes")
        self.name = name


class WindowExceeded(SummarizerUnavailable):
    """The request was longer than the model's window."""

    code = "window_exceeded"
