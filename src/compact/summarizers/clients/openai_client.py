"""Any endpoint that speaks OpenAI's Chat Completions, through the `openai` package."""

from __future__ import annotations

import os
from typing import Any

from compact.summarizers.clients.api_errors import load_package, read_error
from compact.summarizers.clients.model_client import CompletionRequest, FinishReason, ModelAnswer

_FINISHES = {"length": FinishReason.LENGTH, "content_filter": FinishReason.REFUSED}
# Servers that need no key still get one: the client insists.
_NO_KEY = "none"


class OpenAIClient:
    """Asks one model of an OpenAI-compatible server; the connection is opened with the first request."""

    def __init__(self, model: str, *, base_url: str | None = None, api_key: str | None = None) -> None:
        self._model, self._base_url, self._api_key = model, base_url, api_key
        self._client: Any = None

    def __call__(self, request: CompletionRequest) -> ModelAnswer:
        """Return the answer to one request."""
        openai = load_package("openai")
        try:
            completion = self._opened(openai).chat.completions.create(
                model=self._model,
                messages=[
                    {"role": "system", "content": request.system},
                    {"role": "user", "content": request.prompt},
                ],
                timeout=request.timeout_seconds,
                extra_body=dict(request.settings),
            )
        except Exception as error:
            raise read_error(error, model=self._model, sent=request.settings) from error
        return read_completion(completion)

    def _opened(self, openai: Any) -> Any:
        if self._client is None:
            self._client = openai.OpenAI(
                base_url=self._base_url,
                api_key=self._api_key or self._placeholder_key(),
                max_retries=0,  # we try again ourselves, within a deadline
            )
        return self._client

    def _placeholder_key(self) -> str | None:
        """Return a key for a server that needs none; None lets the package look for OPENAI_API_KEY."""
        return _NO_KEY if self._base_url and not os.environ.get("OPENAI_API_KEY") else None


def read_completion(completion: Any) -> ModelAnswer:
    """Return the answer in a completion; servers differ in what they leave out."""
    choices = getattr(completion, "choices", None) or ()
    usage = getattr(completion, "usage", None)
    message = choices[0].message if choices else None
    more: Any = getattr(message, "provider_specific_fields", None) or {}
    refusal = str(getattr(message, "refusal", None) or more.get("refusal") or "")
    reason = str(choices[0].finish_reason) if choices else ""
    return ModelAnswer(
        text=getattr(message, "content", None) or "",
        finish=FinishReason.REFUSED if refusal else _FINISHES.get(reason, FinishReason.DONE),
        refusal=refusal,
        input_tokens=int(getattr(usage, "prompt_tokens", 0) or 0),
        output_tokens=int(getattr(usage, "completion_tokens", 0) or 0),
        cache_read_tokens=int(getattr(getattr(usage, "prompt_tokens_details", None), "cached_tokens", 0) or 0),
    )
