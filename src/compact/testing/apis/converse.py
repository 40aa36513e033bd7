"""Bedrock's Converse: what it rejects, and what its answers look like.

What a list of messages must be is known to `compact.dialects.converse`; here are the parameters.
"""

from __future__ import annotations

from typing import Any

from compact.dialects.converse import check_converse
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

_PARAMETERS = names(
    "model messages system inferenceConfig toolConfig guardrailConfig additionalModelRequestFields requestMetadata "
    "additionalModelResponseFieldPaths performanceConfig promptVariables serviceTier outputConfig"
)
_STOP = {"stop": "end_turn", "length": "max_tokens", "refusal": "guardrail_intervened", "filter": "content_filtered"}


class ConverseApi:
    """Converse; requests are signed, and no signature is checked."""

    def key(self, headers: Fields) -> str:
        """Return nothing: there is no key, but a signature."""
        return ""

    def check(self, body: Fields, headers: Fields, settings: ServerSettings) -> None:
        """Raise RequestRejected for what the API does not take."""
        for name in body:
            if name not in _PARAMETERS:
                raise RequestRejected(f"The model returned the following errors: extraneous key [{name}]")
        messages = as_list(body.get("messages")) or []
        if not messages or messages[0].get("role") != "user":
            raise RequestRejected("A conversation must start with a user message.")
        for violation in check_converse(messages, known_only=True):
            raise RequestRejected(f"messages.{violation.place}: {violation.rule}: {violation.detail}")

    def texts(self, body: Fields) -> list[PromptText]:
        """Return the text of the system prompt and of every message, calls and results included, and of every tool."""
        found = [PromptText("system", _text(body["system"]))] if body.get("system") else []
        found += [PromptText(message["role"], _text(message["content"])) for message in body["messages"]]
        config = as_fields(body.get("toolConfig")) or {}
        return found + [PromptText("tools", str(tool)) for tool in as_list(config.get("tools")) or []]

    def limit(self, body: Fields) -> int | None:
        """Return the limit, if there is one."""
        return (as_fields(body.get("inferenceConfig")) or {}).get("maxTokens")

    def too_long(self, prompt_tokens: int, limit: int, window_tokens: int) -> RequestRejected:
        """Return the error that clients recognise by its words."""
        if prompt_tokens > window_tokens:
            return RequestRejected("Input is too long for requested model.")
        parts = f"{prompt_tokens} + {limit} > {window_tokens}"
        return RequestRejected(f"input length and `max_tokens` exceed context limit: {parts}")

    def answer(self, answer: ScriptedAnswer, number: int, model: str, usage: TokenUsage) -> dict[str, Any]:
        """Return a message."""
        blocks: list[dict[str, Any]] = [{"text": answer.text}] if answer.text else []
        for call in answer.calls:
            used = {"toolUseId": call.call_id, "name": call.name, "input": dict(call.arguments)}
            blocks.append({"toolUse": used})
        return {
            "output": {"message": {"role": "assistant", "content": blocks}},
            "stopReason": "tool_use" if answer.calls else _STOP[answer.finish],
            "usage": {
                "inputTokens": usage.prompt_tokens,
                "outputTokens": usage.output_tokens,
                "totalTokens": usage.prompt_tokens + usage.output_tokens,
            },
            "metrics": {"latencyMs": 1},
        }

    def error(self, rejected: RequestRejected) -> dict[str, Any]:
        """Return an error of AWS."""
        kind = "ThrottlingException" if rejected.status == 429 else "ValidationException"
        return {"__type": kind, "message": rejected.message}


def _text(content: object) -> str:
    texts: list[str] = []
    for block in as_list(content) or []:
        used, result = block.get("toolUse"), block.get("toolResult")
        if used:
            texts.append(f"{used['name']} {used['input']}")
        else:
            texts.append(_text(result["content"]) if result else str(block.get("text", "")))
    return "\n".join(texts)
