"""Anthropic Messages: what it rejects, in its words, and what its answers look like.

What a list of messages must be is known to `compact.dialects.anthropic_check`; here are its words, and the parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compact.core.messages.legality import Violation
from compact.dialects.anthropic_check import check_anthropic
from compact.testing.model_script import ScriptedAnswer
from compact.testing.provider_api import (
    Fields,
    PromptText,
    RequestRejected,
    ServerSettings,
    TokenUsage,
    as_fields,
    as_list,
    is_number,
    names,
)

_PARAMETERS = names(
    "model messages max_tokens system stop_sequences stream metadata tools tool_choice thinking service_tier speed "
    "output_config cache_control container inference_geo diagnostics user_profile_id workspace_id"
)
_SAMPLING = names("temperature top_p top_k")
# Sampling parameters are gone from the second version.
_VERSIONS = ("2023-06-01", "2026-10-21")
_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
_STOP = {"stop": "end_turn", "length": "max_tokens", "refusal": "refusal", "filter": "refusal"}
# How the API says that a rule is broken.
_WORDINGS: Mapping[str, str] = {
    "no_messages": "messages: at least one message is required",
    "unknown_role": "{where}.role: Input should be 'user' or 'assistant': {detail}",
    "unknown_key": "{where}: Extra inputs are not permitted: {detail}",
    "no_content": "{where}.content: Input should be a valid string or list",
    "empty_content": "{where}: content must be non-empty except for the optional final assistant message: {detail}",
    "unknown_type": "{where}.content: Input tag does not match any of the expected tags: {detail}",
    "first_turn": 'messages: first message must use the "user" role',
    "trailing_space": "messages: final assistant content cannot end with trailing whitespace",
    "result_without_call": (
        "{where}.content: unexpected `tool_use_id` found in `tool_result` blocks: {detail}. Each `tool_result` block "
        "must have a corresponding `tool_use` block in the previous message."
    ),
    "call_without_result": (
        "{where}: `tool_use` ids were found without `tool_result` blocks immediately after: {detail}"
    ),
}
_ONLY_SYSTEM = 'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter'


class MessagesApi:
    """The Messages API."""

    def key(self, headers: Fields) -> str:
        """Return the key from its own header, or the bearer token."""
        return str(headers.get("x-api-key") or str(headers.get("authorization", "")).removeprefix("Bearer").strip())

    def check(self, body: Fields, headers: Fields, settings: ServerSettings) -> None:
        """Raise RequestRejected for what the API does not take."""
        version = str(headers.get("anthropic-version") or "")
        if version not in _VERSIONS:
            text = f'"{version}" is not a valid version' if version else "header is required"
            raise RequestRejected(f"anthropic-version: {text}")
        for name in ("model", "max_tokens", "messages"):
            if body.get(name) is None:
                raise RequestRejected(f"{name}: Field required")
        older = version == _VERSIONS[0]
        for name in body:
            if name not in _PARAMETERS and not (older and name in _SAMPLING):
                raise RequestRejected(f"{name}: Extra inputs are not permitted")
        if not isinstance(body["model"], str):
            raise RequestRejected("model: Input should be a valid string")
        _check_numbers(body)
        _check_messages(body.get("system"), as_list(body["messages"]) or [])

    def texts(self, body: Fields) -> list[PromptText]:
        """Return the text of the system prompt and of every message, calls and results included, and of every tool."""
        found = [PromptText("system", _text(body["system"]))] if body.get("system") else []
        found += [PromptText(message["role"], _text(message["content"])) for message in body["messages"]]
        return found + [PromptText("tools", str(tool)) for tool in as_list(body.get("tools")) or []]

    def limit(self, body: Fields) -> int | None:
        """Return the limit, which every request has."""
        return body["max_tokens"]

    def too_long(self, prompt_tokens: int, limit: int, window_tokens: int) -> RequestRejected:
        """Return the error that clients recognise by its words."""
        if prompt_tokens > window_tokens:
            return RequestRejected(f"prompt is too long: {prompt_tokens} tokens > {window_tokens} maximum")
        parts = f"{prompt_tokens} + {limit} > {window_tokens}"
        return RequestRejected(
            f"input length and `max_tokens` exceed context limit: {parts}, decrease either and try again"
        )

    def answer(self, answer: ScriptedAnswer, number: int, model: str, usage: TokenUsage) -> dict[str, Any]:
        """Return a message; one without text has no block at all."""
        blocks: list[dict[str, Any]] = [{"type": "text", "text": answer.text}] if answer.text else []
        for call in answer.calls:
            blocks.append({"type": "tool_use", "id": call.call_id, "name": call.name, "input": dict(call.arguments)})
        return {
            "id": f"msg_scripted_{number}",
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": blocks,
            "stop_reason": "tool_use" if answer.calls else _STOP[answer.finish],
            "stop_sequence": None,
            "usage": {
                "input_tokens": usage.prompt_tokens,
                "output_tokens": usage.output_tokens,
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0,
            },
        }

    def error(self, rejected: RequestRejected) -> dict[str, Any]:
        """Return Anthropic's error body."""
        kind = rejected.code or _ERROR_TYPES.get(rejected.status, "api_error")
        return {"type": "error", "error": {"type": kind, "message": rejected.message}, "request_id": "req_scripted"}


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    texts: list[str] = []
    for each in as_list(content) or []:
        block = as_fields(each) or {}
        inner = block.get("text") or block.get("thinking") or _text(block.get("content"))
        texts.append(f"{block.get('name')} {block.get('input')}" if block.get("type") == "tool_use" else inner)
    return "\n".join(texts)


def _check_numbers(body: Fields) -> None:
    limit = body["max_tokens"]
    if not isinstance(limit, int) or isinstance(limit, bool):
        raise RequestRejected("max_tokens: Input should be a valid integer")
    if limit < 1:
        raise RequestRejected("max_tokens: must be greater than or equal to 1")
    for name in ("temperature", "top_p"):
        value = body.get(name)
        if value is not None and not (is_number(value) and 0 <= value <= 1):
            raise RequestRejected(f"{name}: range: 0..1")
    thinking = as_fields(body.get("thinking")) or {}
    if thinking.get("type") == "enabled":
        budget = thinking.get("budget_tokens")
        if not isinstance(budget, int) or not 1024 <= budget < limit:
            raise RequestRejected("`max_tokens` must be greater than `thinking.budget_tokens`, and that at least 1024")
        if body.get("temperature") not in (None, 1):
            raise RequestRejected("`temperature` may only be set to 1 when thinking is enabled")


def _check_messages(system: object, messages: list[Any]) -> None:
    """Raise RequestRejected for the first rule that the system prompt or the messages break."""
    lead = [{"role": "system", "content": system}] if system else []
    for violation in check_anthropic([*lead, *messages], known_only=True):
        raise RequestRejected(_wording(violation, len(lead), messages))


def _wording(violation: Violation, offset: int, messages: list[Any]) -> str:
    if violation.rule == "no_messages" and messages:
        return _ONLY_SYSTEM
    place = violation.place - offset
    where = "system" if place < 0 else f"messages.{place}"
    return _WORDINGS.get(violation.rule, "{where}: {detail}").format(where=where, detail=violation.detail)
