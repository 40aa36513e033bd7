"""Anthropic's Messages, through the `anthropic` package."""

from __future__ import annotations

from typing import Any

from compact.summarizers.api_errors import explained
from compact.summarizers.model_client import Finish, ModelAnswer, ModelRequest, ParameterRejected
from compact.summarizers.packages import load

_FINISHES = {
    "max_tokens": Finish.LENGTH,
    "model_context_window_exceeded": Finish.LENGTH,
    "refusal": Finish.REFUSED,
}
# Here a limit has to be sent: as much as thinking may want, and less for models that cannot give that.
_LIMITS = (32_000, 8_192, 4_096)
# Parameters of other dialects, which this one does not know.
_FOREIGN = ("seed", "temperature", "response_format")


class AnthropicClient:
    """Asks one model of Anthropic's, or of a server that speaks like it."""

    def __init__(self, model: str, *, base_url: str | None = None, api_key: str | None = None) -> None:
        self._model, self._base_url, self._api_key = model, base_url, api_key
        self._client: Any = None
        self._limits = _LIMITS

    def __call__(self, request: ModelRequest) -> ModelAnswer:
        """The answer to one question; a limit that is too high for the model is lowered, and that is remembered."""
        settings = {name: value for name, value in request.settings.items() if name not in _FOREIGN}
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

    def _ask(self, request: ModelRequest, settings: dict[str, Any]) -> ModelAnswer:
        settings = dict(settings)
        max_tokens = settings.pop("max_tokens")
        anthropic = load("anthropic", extra="anthropic")
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
            raise explained(error, model=self._model, sent=(*settings, "max_tokens")) from error
        return _read(message)

    def _opened(self, anthropic: Any) -> Any:
        if self._client is None:
            self._client = anthropic.Anthropic(base_url=self._base_url, api_key=self._api_key, max_retries=0)
        return self._client


def _read(message: Any) -> ModelAnswer:
    """The text of an answer; thinking is left out."""
    usage = message.usage
    cached = (getattr(usage, name, None) or 0 for name in ("cache_read_input_tokens", "cache_creation_input_tokens"))
    return ModelAnswer(
        text="".join(block.text for block in message.content if block.type == "text"),
        finish=_FINISHES.get(str(message.stop_reason), Finish.DONE),
        input_tokens=int(usage.input_tokens or 0) + sum(cached),
        output_tokens=int(usage.output_tokens or 0),
        cache_read_tokens=int(getattr(usage, "cache_read_input_tokens", 0) or 0),
    )
