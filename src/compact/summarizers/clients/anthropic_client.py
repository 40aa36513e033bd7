"""Anthropic's Messages, through the `anthropic` package."""

from __future__ import annotations

from typing import Any

from compact.summarizers.clients.api_errors import load_package, read_error
from compact.summarizers.clients.model_client import CompletionRequest, FinishReason, ModelAnswer, ParameterRejected

_FINISHES = {
    "max_tokens": FinishReason.LENGTH,
    "model_context_window_exceeded": FinishReason.LENGTH,
    "refusal": FinishReason.REFUSED,
}
# Here a limit has to be sent. Chosen: as much as thinking may take, and less for models that cannot give that.
_LIMITS = (32_000, 8_192, 4_096)
# Parameters of other dialects, which this one does not know.
_UNKNOWN_PARAMETERS = ("seed", "temperature", "response_format")


class AnthropicClient:
    """Asks one model of Anthropic's, or of a server that speaks like it."""

    def __init__(self, model: str, *, base_url: str | None = None, api_key: str | None = None) -> None:
        self._model, self._base_url, self._api_key = model, base_url, api_key
        self._client: Any = None
        self._limits = _LIMITS

    def __call__(self, request: CompletionRequest) -> ModelAnswer:
        """Return the answer to one request; a limit that is too high for the model is lowered for good."""
        settings = {name: value for name, value in request.settings.items() if name not in _UNKNOWN_PARAMETERS}
        if "max_tokens" in settings:
            return self._ask(request, settings)
        while True:
            limits = self._limits
            try:
                return self._ask(request, {**settings, "max_tokens": limits[0]})
            except ParameterRejected as error:
                if error.name != "max_tokens" or len(limits) == 1:
                    raise
                self._limits = limits[1:]

    def _ask(self, request: CompletionRequest, settings: dict[str, Any]) -> ModelAnswer:
        settings = dict(settings)
        max_tokens = settings.pop("max_tokens")
        anthropic = load_package("anthropic")
        try:
            message = self._opened(anthropic).messages.create(
                model=self._model,
                max_tokens=max_tokens,
                system=request.system,
                messages=[{"role": "user", "content": request.prompt}],
                timeout=request.timeout_seconds,
                extra_body=settings,
            )
        except Exception as error:
            raise read_error(error, model=self._model, sent=(*settings, "max_tokens")) from error
        return _read(message)

    def _opened(self, anthropic: Any) -> Any:
        if self._client is None:
            self._client = anthropic.Anthropic(base_url=self._base_url, api_key=self._api_key, max_retries=0)
        return self._client


def _read(message: Any) -> ModelAnswer:
    """Return the text of an answer; thinking is left out."""
    usage = message.usage
    cached = (getattr(usage, name, None) or 0 for name in ("cache_read_input_tokens", "cache_creation_input_tokens"))
    return ModelAnswer(
        text="".join(block.text for block in message.content if block.type == "text"),
        finish=_FINISHES.get(str(message.stop_reason), FinishReason.DONE),
        input_tokens=int(usage.input_tokens or 0) + sum(cached),
        output_tokens=int(usage.output_tokens or 0),
        cache_read_tokens=int(getattr(usage, "cache_read_input_tokens", 0) or 0),
    )
