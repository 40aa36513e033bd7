"""Gemini's generateContent: what it rejects, in its words, and what its answers look like.

What a list of contents must be is known to `compact.dialects.gemini_check`; here are the parameters.
"""

from __future__ import annotations

import json
from typing import Any

from compact.dialects.gemini_check import check_gemini
from compact.testing.model_script import ScriptedAnswer
from compact.testing.provider_api import (
    Fields,
    PromptText,
    RequestRejected,
    ServerSettings,
    TokenUsage,
    as_fields,
    as_list,
    names,
)

_PARAMETERS = names("model contents systemInstruction tools toolConfig generationConfig safetySettings cachedContent")
_STATUS = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED"}
_FINISH = {"stop": "STOP", "length": "MAX_TOKENS", "refusal": "SAFETY", "filter": "SAFETY"}


class GenerateContentApi:
    """generateContent; the answer has a limit of its own, which takes nothing of the input's."""

    def key(self, headers: Fields) -> str:
        """Return the key from its own header."""
        return str(headers.get("x-goog-api-key") or "")

    def check(self, body: Fields, headers: Fields, settings: ServerSettings) -> None:
        """Raise RequestRejected for what the API does not take."""
        for name in body:
            if name not in _PARAMETERS:
                raise RequestRejected(f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.')
        for violation in check_gemini(as_list(body.get("contents")) or []):
            raise RequestRejected(f"contents[{violation.place}]: {violation.rule}: {violation.detail}")

    def texts(self, body: Fields) -> list[PromptText]:
        """Return the instruction, the text of every content, calls and results included, and of every tool."""
        instruction = as_fields(body.get("systemInstruction"))
        found = [PromptText("system", _text(instruction))] if instruction else []
        found += [PromptText(content.get("role", "user"), _text(content)) for content in body["contents"]]
        return found + [PromptText("tools", str(tool)) for tool in as_list(body.get("tools")) or []]

    def limit(self, body: Fields) -> int | None:
        """Return None: what the answer may have is not part of the input's limit."""
        return None

    def too_long(self, prompt_tokens: int, limit: int, window_tokens: int) -> RequestRejected:
        """Return the error that clients recognise by its words."""
        counts = f"({prompt_tokens}) exceeds the maximum number of tokens allowed ({window_tokens})"
        return RequestRejected(f"The input token count {counts}.")

    def answer(self, answer: ScriptedAnswer, number: int, model: str, usage: TokenUsage) -> dict[str, Any]:
        """Return one candidate."""
        parts: list[dict[str, Any]] = [{"text": answer.text}] if answer.text else []
        parts += [{"functionCall": {"name": call.name, "args": dict(call.arguments)}} for call in answer.calls]
        content = {"role": "model", "parts": parts}
        return {
            "candidates": [{"content": content, "finishReason": _FINISH[answer.finish], "index": 0}],
            "usageMetadata": {
                "promptTokenCount": usage.prompt_tokens,
                "candidatesTokenCount": usage.output_tokens,
                "totalTokenCount": usage.prompt_tokens + usage.output_tokens,
            },
            "modelVersion": model,
            "responseId": f"scripted-{number}",
        }

    def error(self, rejected: RequestRejected) -> dict[str, Any]:
        """Return Google's error body."""
        status = _STATUS.get(rejected.status, "INTERNAL")
        return {"error": {"code": rejected.status, "message": rejected.message, "status": status}}


def _text(content: Fields) -> str:
    texts: list[str] = []
    for part in as_list(content.get("parts")) or []:
        called = part.get("functionCall") or part.get("functionResponse")
        texts.append(json.dumps(called) if called else str(part.get("text", "")))
    return "\n".join(texts)
