"""Every provider that `litellm` knows, by its own names: `gemini/…`, `bedrock/…`, `ollama/…`."""

from __future__ import annotations

from typing import Any

from compact.summarizers.clients.api_errors import load_package, read_error
from compact.summarizers.clients.model_client import CompletionRequest, ModelAnswer
from compact.summarizers.clients.openai_client import read_completion


class LiteLlmClient:
    """Asks one model through litellm; loading that package takes seconds, so it is loaded with the first request."""

    def __init__(self, model: str, *, base_url: str | None = None, api_key: str | None = None) -> None:
        self._model, self._base_url, self._api_key = model, base_url, api_key

    def __call__(self, request: CompletionRequest) -> ModelAnswer:
        """Return the answer to one request."""
        litellm = load_package("litellm")
        litellm.suppress_debug_info = True  # it would print advice to the agent's terminal
        where: dict[str, Any] = {"base_url": self._base_url, "api_key": self._api_key}
        try:
            completion = litellm.completion(
                model=self._model,
                messages=[
                    {"role": "system", "content": request.system},
                    {"role": "user", "content": request.prompt},
                ],
                timeout=request.timeout_seconds,
                num_retries=0,
                max_retries=0,
                **{name: value for name, value in where.items() if value},
                **request.settings,
            )
        except Exception as error:
            raise read_error(error, model=self._model, sent=request.settings) from error
        return read_completion(completion)
