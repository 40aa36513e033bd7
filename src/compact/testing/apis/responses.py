"""OpenAI Responses: what it rejects, in its words, and what its answers look like.

What a list of items must be is known to `compact.dialects.responses_check`; here are the parameters.
"""

from __future__ import annotations

import json
from typing import Any

from compact.dialects.responses_check import check_responses
from compact.testing.model_script import ScriptedAnswer
from compact.testing.openai_api import ChatCompletionsApi
from compact.testing.provider_api import (
    Fields,
    PromptText,
    RequestRejected,
    ServerSettings,
    TokenUsage,
    as_list,
    names,
)

_PARAMETERS = names(
    "model input instructions tools tool_choice parallel_tool_calls max_output_tokens max_tool_calls temperature top_p "
    "top_logprobs truncation metadata store stream stream_options include reasoning text user service_tier background "
    "previous_response_id conversation prompt prompt_cache_key prompt_cache_retention safety_identifier"
)


class ResponsesApi:
    """The Responses API, for a history that is sent with every request."""

    def key(self, headers: Fields) -> str:
        """Return the bearer token."""
        return ChatCompletionsApi().key(headers)

    def check(self, body: Fields, headers: Fields, settings: ServerSettings) -> None:
        """Raise RequestRejected for what the API does not take."""
        for name in body:
            if name not in _PARAMETERS:
                raise RequestRejected(f"Unknown parameter: '{name}'.", code="unknown_parameter", param=name)
        if not isinstance(body.get("model"), str) or not body["model"]:
            raise RequestRejected("you must provide a model parameter", param="model")
        for violation in check_responses(_items(body)):
            where = f"input[{violation.place}]"
            raise RequestRejected(f"Invalid '{where}': {violation.rule}: {violation.detail}.", param=where)

    def texts(self, body: Fields) -> list[PromptText]:
        """Return the instructions, the text of every item, and of every tool."""
        found = [PromptText("system", body["instructions"])] if body.get("instructions") else []
        found += [PromptText(item.get("role") or "tool", _item_text(item)) for item in _items(body)]
        return found + [PromptText("tools", str(tool)) for tool in as_list(body.get("tools")) or []]

    def limit(self, body: Fields) -> int | None:
        """Return the limit, if there is one."""
        return body.get("max_output_tokens")

    def too_long(self, prompt_tokens: int, limit: int, window_tokens: int) -> RequestRejected:
        """Return the error that clients recognise by its code."""
        text = "Your input exceeds the context window of this model. Please adjust your input and try again."
        return RequestRejected(text, code="context_length_exceeded", param="input")

    def answer(self, answer: ScriptedAnswer, number: int, model: str, usage: TokenUsage) -> dict[str, Any]:
        """Return a response with its calls, or with one message."""
        output: list[dict[str, Any]] = [
            {
                "type": "function_call",
                "id": f"fc_{number}_{place}",
                "call_id": call.call_id,
                "name": call.name,
                "arguments": json.dumps(call.arguments),
                "status": "completed",
            }
            for place, call in enumerate(answer.calls)
        ]
        if not output:
            text: dict[str, Any] = {"type": "output_text", "text": answer.text or "", "annotations": [], "logprobs": []}
            message = {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed"}
            output.append({**message, "content": [text]})
        return {
            "id": f"resp_scripted_{number}",
            "object": "response",
            "created_at": 1_700_000_000 + number,
            "status": "completed",
            "model": model,
            "output": output,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": {
                "input_tokens": usage.prompt_tokens,
                "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
                "output_tokens": usage.output_tokens,
                "output_tokens_details": {"reasoning_tokens": answer.reasoning_tokens},
                "total_tokens": usage.prompt_tokens + usage.output_tokens,
            },
        }

    def error(self, rejected: RequestRejected) -> dict[str, Any]:
        """Return OpenAI's error body."""
        return ChatCompletionsApi().error(rejected)


def _items(body: Fields) -> list[Any]:
    given = body.get("input")
    return [{"role": "user", "content": given}] if isinstance(given, str) else as_list(given) or []


def _item_text(item: Fields) -> str:
    if item.get("type") == "function_call":
        return f"{item['name']} {item['arguments']}"
    content = item.get("output", item.get("content"))
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text", "")) for part in as_list(content) or [])
