"""OpenAI Chat Completions: what it rejects, in its words, and what its answers look like.

What a list of messages must be is known to `compact.dialects.chat_check`; here are its words, and the parameters.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from compact.core.messages.legality import Violation
from compact.dialects.chat_check import check_chat_completions
from compact.testing.model_script import ScriptedAnswer, ScriptedCall
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
    "model messages max_tokens max_completion_tokens temperature top_p n stop stream stream_options seed tools "
    "tool_choice parallel_tool_calls response_format presence_penalty frequency_penalty logit_bias logprobs "
    "top_logprobs user metadata store reasoning_effort verbosity service_tier modalities audio prediction "
    "web_search_options prompt_cache_key prompt_cache_retention safety_identifier functions function_call "
    "moderation prompt_cache_options"
)
_FORMATS = ("text", "json_object", "json_schema")
_ERROR_CODES = {401: "invalid_api_key", 429: "rate_limit_exceeded"}
_FINISH = {"stop": "stop", "length": "length", "refusal": "stop", "filter": "content_filter"}


@dataclass(frozen=True, slots=True)
class _Wording:
    """How OpenAI says that a rule is broken: its words, its code, and the parameter it names."""

    text: str
    code: str | None = None
    param: str = "{where}"


_NULL = _Wording("Invalid value for '{where}.content': expected a string, got null.", "invalid_type", "{where}.content")
_OTHERWISE = _Wording("Invalid '{where}': {detail}.", "invalid_value")
_WORDINGS: Mapping[str, _Wording] = {
    "no_messages": _Wording(
        "Invalid 'messages': empty array. Expected an array with minimum length 1.", "empty_array", "messages"
    ),
    "not_a_message": _Wording("Invalid type for '{where}': {detail}.", "invalid_type"),
    "unknown_key": _Wording("Unknown parameter in '{where}': {detail}.", "unknown_parameter"),
    "unknown_role": _Wording("Invalid value for '{where}.role': {detail}.", "invalid_value", "{where}.role"),
    "empty_content": _Wording(
        "Invalid '{where}.content': empty array. Expected an array with minimum length 1.",
        "empty_array",
        "{where}.content",
    ),
    "wrong_content": _Wording("Invalid type for '{where}.content': {detail}.", "invalid_type", "{where}.content"),
    "wrong_part": _Wording("Invalid value for '{where}.content': {detail}.", "invalid_value", "{where}.content"),
    "incomplete_call": _Wording(
        "Missing required parameter in '{where}.tool_calls': {detail}.",
        "missing_required_parameter",
        "{where}.tool_calls",
    ),
    "result_without_call": _Wording(
        "Invalid parameter: messages with role 'tool' must be a response to a preceding message with 'tool_calls'.",
        param="{where}.role",
    ),
    "call_without_result": _Wording(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id': "
        "{detail}.",
        param="{where}.role",
    ),
}


class ChatCompletionsApi:
    """Chat Completions."""

    def key(self, headers: Fields) -> str:
        """Return the bearer token."""
        return str(headers.get("authorization", "")).removeprefix("Bearer").strip()

    def check(self, body: Fields, headers: Fields, settings: ServerSettings) -> None:
        """Raise RequestRejected for what the API does not take."""
        for name in body:
            if name not in _PARAMETERS:
                _reject(f"Unrecognized request argument supplied: {name}", "unknown_parameter", name)
        if not isinstance(body.get("model"), str) or not body["model"]:
            _reject("you must provide a model parameter", None, "model")
        _check_messages(body)
        _check_limits(body, settings)
        _check_sampling(body, settings)
        _check_format(body)

    def texts(self, body: Fields) -> list[PromptText]:
        """Return the text of every message, calls included, and of every tool."""
        found: list[PromptText] = []
        for message in body["messages"]:
            calls = map(_call_text, as_list(message.get("tool_calls")) or [])
            text = "\n".join([_text(message.get("content")), *calls]).strip()
            found.append(PromptText(message["role"], text))
        return found + [PromptText("tools", str(tool)) for tool in as_list(body.get("tools")) or []]

    def limit(self, body: Fields) -> int | None:
        """Return the limit, by either of its two names."""
        return body.get("max_completion_tokens") or body.get("max_tokens")

    def too_long(self, prompt_tokens: int, limit: int, window_tokens: int) -> RequestRejected:
        """Return the error that clients recognise by its code."""
        asked = f"your messages resulted in {prompt_tokens} tokens"
        if limit:
            parts = f"({prompt_tokens} in the messages, {limit} in the completion)"
            asked = f"you requested {prompt_tokens + limit} tokens {parts}"
        message = f"This model's maximum context length is {window_tokens} tokens. However, {asked}."
        return RequestRejected(message, code="context_length_exceeded", param="messages")

    def answer(self, answer: ScriptedAnswer, number: int, model: str, usage: TokenUsage) -> dict[str, Any]:
        """Return a chat completion with one choice."""
        message: dict[str, Any] = {"role": "assistant", "content": answer.text, "refusal": answer.refusal}
        if answer.calls:
            message["tool_calls"] = [_written_call(call) for call in answer.calls]
        finish = "tool_calls" if answer.calls else _FINISH[answer.finish]
        return {
            "id": f"chatcmpl-scripted-{number}",
            "object": "chat.completion",
            "created": 1_700_000_000 + number,
            "model": model,
            "system_fingerprint": "fp_scripted",
            "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": finish}],
            "usage": {
                "prompt_tokens": usage.prompt_tokens,
                "completion_tokens": usage.output_tokens,
                "total_tokens": usage.prompt_tokens + usage.output_tokens,
                "prompt_tokens_details": {"cached_tokens": 0},
                "completion_tokens_details": {"reasoning_tokens": answer.reasoning_tokens},
            },
        }

    def error(self, rejected: RequestRejected) -> dict[str, Any]:
        """Return OpenAI's error body."""
        kind = "server_error" if rejected.status >= 500 else "invalid_request_error"
        kind = "requests" if rejected.status == 429 else kind
        code = rejected.code or _ERROR_CODES.get(rejected.status)
        if rejected.status == 404 and rejected.param == "model":
            code = "model_not_found"
        return {"error": {"message": rejected.message, "type": kind, "param": rejected.param, "code": code}}


def _written_call(call: ScriptedCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": json.dumps(call.arguments)}
    return {"id": call.call_id, "type": "function", "function": function}


def _reject(message: str, code: str | None, param: str) -> NoReturn:
    raise RequestRejected(message, code=code, param=param)


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in as_list(content) or [] if "text" in part)


def _call_text(call: Fields) -> str:
    inner = as_fields(call.get("function") or call.get("custom")) or {}
    return f"{inner.get('name', '')} {inner.get('arguments', inner.get('input', ''))}"


# -- messages --------------------------------------------------------------------------------------------------------


def _check_messages(body: Fields) -> None:
    if "messages" not in body:
        _reject("Missing required parameter: 'messages'.", "missing_required_parameter", "messages")
    messages = as_list(body["messages"])
    if messages is None:
        _reject("Invalid type for 'messages': expected an array of objects.", "invalid_type", "messages")
    for violation in check_chat_completions(messages, known_only=True):
        _reject_violation(violation, messages)


def _reject_violation(violation: Violation, messages: list[Any]) -> NoReturn:
    wording = _WORDINGS.get(violation.rule, _OTHERWISE)
    if violation.rule == "empty_content" and messages[violation.place].get("content") is None:
        wording = _NULL
    where = f"messages[{violation.place}]"
    text = wording.text.format(where=where, detail=violation.detail)
    _reject(text, wording.code, wording.param.format(where=where))


# -- parameters ------------------------------------------------------------------------------------------------------


def _check_limits(body: Fields, settings: ServerSettings) -> None:
    limits = [name for name in ("max_tokens", "max_completion_tokens") if body.get(name) is not None]
    if len(limits) == 2:
        text = "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported."
        _reject(text, "invalid_parameter_combination", "max_tokens")
    for name in limits:
        value = body[name]
        if not isinstance(value, int) or isinstance(value, bool):
            _reject(f"Invalid type for '{name}': expected an integer.", "invalid_type", name)
        if value < 1:
            _reject(f"Invalid '{name}': expected a value >= 1, but got {value}.", "integer_below_min_value", name)
    if settings.reasoning and "max_tokens" in limits:
        text = "'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
        _reject(f"Unsupported parameter: {text}", "unsupported_parameter", "max_tokens")


def _check_sampling(body: Fields, settings: ServerSettings) -> None:
    for name, lowest, highest in (("temperature", 0, 2), ("top_p", 0, 1), ("presence_penalty", -2, 2)):
        value = body.get(name)
        if value is None:
            continue
        if not is_number(value):
            _reject(f"Invalid type for '{name}': expected a decimal.", "invalid_type", name)
        if value < lowest:
            _reject(f"Invalid '{name}': expected >= {lowest}, but got {value}.", "decimal_below_min_value", name)
        if value > highest:
            _reject(f"Invalid '{name}': expected <= {highest}, but got {value}.", "decimal_above_max_value", name)
    if settings.reasoning and body.get("temperature") not in (None, 1):
        text = f"'temperature' does not support {body['temperature']} with this model. Only the default (1) value is."
        _reject(f"Unsupported value: {text}", "unsupported_value", "temperature")
    if not isinstance(body.get("seed"), int | None):
        _reject("Invalid type for 'seed': expected an integer.", "invalid_type", "seed")


def _check_format(body: Fields) -> None:
    wanted = as_fields(body.get("response_format"))
    if wanted is None:
        return
    if wanted.get("type") not in _FORMATS:
        known = ", ".join(_FORMATS)
        _reject(f"Invalid value. Supported values are: {known}.", "invalid_value", "response_format.type")
    texts = " ".join(_text(message.get("content")) for message in body["messages"])
    if wanted["type"] == "json_object" and "json" not in texts.lower():
        text = "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'."
        _reject(text, None, "messages")
    if wanted["type"] == "json_schema" and not (as_fields(wanted.get("json_schema")) or {}).get("name"):
        param = "response_format.json_schema.name"
        _reject(f"Missing required parameter: '{param}'.", "missing_required_parameter", param)
