"""Anthropic Messages: what it rejects, in its words, and what its answers look like."""

from __future__ import annotations

from typing import Any

from compact.testing_model.rules import Fields, Rejected, Rules, as_fields, as_list, is_number, words
from compact.testing_model.steps import Answer

_PARAMETERS = words(
    "model messages max_tokens system stop_sequences stream metadata tools tool_choice thinking service_tier speed "
    "output_config cache_control container inference_geo diagnostics user_profile_id workspace_id"
)
_SAMPLING = words("temperature top_p top_k")
# Sampling parameters are gone from the second version, and content is judged more strictly.
_VERSIONS = ("2023-06-01", "2026-10-21")
_BLOCK_TYPES = words("text image document tool_use tool_result thinking redacted_thinking search_result")
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


class AnthropicWire:
    """The Messages API, without streaming."""

    def key(self, headers: Fields) -> str:
        """The key's own header, or a bearer token."""
        return str(headers.get("x-api-key") or str(headers.get("authorization", "")).removeprefix("Bearer").strip())

    def check(self, body: Fields, headers: Fields, rules: Rules) -> None:
        """Raise Rejected for what the API does not take."""
        version = str(headers.get("anthropic-version") or "")
        if version not in _VERSIONS:
            text = f'"{version}" is not a valid version' if version else "header is required"
            raise Rejected(f"anthropic-version: {text}")
        for name in ("model", "max_tokens", "messages"):
            if body.get(name) is None:
                raise Rejected(f"{name}: Field required")
        older = version == _VERSIONS[0]
        for name in body:
            if name not in _PARAMETERS and not (older and name in _SAMPLING):
                raise Rejected(f"{name}: Extra inputs are not permitted")
        if not isinstance(body["model"], str):
            raise Rejected("model: Input should be a valid string")
        if body.get("stream"):
            raise Rejected("stream: This server does not stream: leave it out, or set it to false.")
        _check_numbers(body)
        _check_blocks(body.get("system") or [], "system")
        _check_messages(as_list(body["messages"]))
        if not older:
            _check_placement(body["messages"])

    def texts(self, body: Fields) -> list[tuple[str, str]]:
        """Role and text of the system prompt and every message, calls and results included."""
        found = [("system", _text(body["system"]))] if body.get("system") else []
        found += [(message["role"], _text(message["content"])) for message in body["messages"]]
        return found + [("tools", str(tool)) for tool in body.get("tools") or []]

    def limit(self, body: Fields) -> int | None:
        """The limit, which every request has."""
        return body["max_tokens"]

    def too_long(self, prompt_tokens: int, limit: int, window_tokens: int) -> Rejected:
        """The error that clients recognise by its words."""
        if prompt_tokens > window_tokens:
            return Rejected(f"prompt is too long: {prompt_tokens} tokens > {window_tokens} maximum")
        parts = f"{prompt_tokens} + {limit} > {window_tokens}"
        return Rejected(f"input length and `max_tokens` exceed context limit: {parts}, decrease either and try again")

    def answer(self, answer: Answer, number: int, model: str, usage: tuple[int, int]) -> dict[str, Any]:
        """A message; one without text has no block at all."""
        blocks = [{"type": "text", "text": answer.text}] if answer.text else []
        return {
            "id": f"msg_scripted_{number}",
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": blocks,
            "stop_reason": _STOP[answer.finish],
            "stop_sequence": None,
            "usage": {
                "input_tokens": usage[0],
                "output_tokens": usage[1],
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0,
            },
        }

    def error(self, rejected: Rejected) -> dict[str, Any]:
        """Anthropic's error body."""
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
        raise Rejected("max_tokens: Input should be a valid integer")
    if limit < 1:
        raise Rejected("max_tokens: must be greater than or equal to 1")
    for name in ("temperature", "top_p"):
        value = body.get(name)
        if value is not None and not (is_number(value) and 0 <= value <= 1):
            raise Rejected(f"{name}: range: 0..1")
    thinking = as_fields(body.get("thinking")) or {}
    if thinking.get("type") == "enabled":
        budget = thinking.get("budget_tokens")
        if not isinstance(budget, int) or not 1024 <= budget < limit:
            raise Rejected("`max_tokens` must be greater than `thinking.budget_tokens`, and that at least 1024")
        if body.get("temperature") not in (None, 1):
            raise Rejected("`temperature` may only be set to 1 when thinking is enabled")


def _check_messages(messages: list[Any] | None) -> None:
    if not messages:
        raise Rejected("messages: at least one message is required")
    last = len(messages) - 1
    for place, message in enumerate(messages):
        where = f"messages.{place}"
        _check_role((as_fields(message) or {}).get("role"), where)
        content = message.get("content")
        may_be_empty = place == last and message["role"] == "assistant"
        if not content and not may_be_empty:
            raise Rejected(
                f"{where}: all messages must have non-empty content except for the optional final assistant message"
            )
        _check_blocks(content, f"{where}.content")
    if messages[0]["role"] != "user":
        raise Rejected('messages: first message must use the "user" role')
    if messages[last]["role"] == "assistant" and _text(messages[last].get("content")).endswith((" ", "\n")):
        raise Rejected("messages: final assistant content cannot end with trailing whitespace")
    _check_pairs(messages)


def _check_role(role: object, where: str) -> None:
    if role == "system":
        raise Rejected('messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter')
    if role not in ("user", "assistant"):
        raise Rejected(f"{where}.role: Input should be 'user' or 'assistant'")


def _check_blocks(content: object, where: str) -> None:
    if isinstance(content, str):
        return
    blocks = as_list(content)
    if blocks is None:
        raise Rejected(f"{where}: Input should be a valid string or list")
    for place, block in enumerate(blocks):
        kind = (as_fields(block) or {}).get("type")
        if kind not in _BLOCK_TYPES:
            raise Rejected(
                f"{where}.{place}: Input tag '{kind}' found using 'type' does not match any of the expected tags"
            )
        if kind == "text" and not str(block.get("text") or "").strip():
            raise Rejected("messages: text content blocks must be non-empty")


def _check_placement(messages: list[Any]) -> None:
    """Documents come from users, citations do not."""
    for place, message in enumerate(messages):
        for block in as_list(message.get("content")) or []:
            if message["role"] == "assistant" and block["type"] == "document":
                raise Rejected(f"messages.{place}.content: document blocks are not permitted in assistant messages")
            if message["role"] == "user" and block.get("citations") and block["type"] == "text":
                raise Rejected(f"messages.{place}.content: citations are not permitted in user messages")


def _check_pairs(messages: list[Any]) -> None:
    """Every call is answered in the very next message, and every answer has its call there."""
    calls: set[str] = set()
    for place, message in enumerate(messages):
        results = _ids(message, "tool_result", "tool_use_id")
        for stray in sorted(results - calls):
            raise Rejected(
                f"messages.{place}.content: unexpected `tool_use_id` found in `tool_result` blocks: {stray}. Each "
                "`tool_result` block must have a corresponding `tool_use` block in the previous message."
            )
        for unanswered in sorted(calls - results):
            raise _unanswered(place - 1, unanswered)
        calls = _ids(message, "tool_use", "id")
    for unanswered in sorted(calls):
        raise _unanswered(len(messages) - 1, unanswered)


def _unanswered(place: int, call_id: str) -> Rejected:
    text = "`tool_use` ids were found without `tool_result` blocks immediately after"
    return Rejected(f"messages.{place}: {text}: {call_id}")


def _ids(message: Fields, kind: str, name: str) -> set[str]:
    blocks = as_list(message.get("content")) or []
    return {str(block.get(name)) for block in blocks if block["type"] == kind}
