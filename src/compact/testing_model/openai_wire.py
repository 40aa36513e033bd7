"""OpenAI Chat Completions: what it rejects, in its words, and what its answers look like."""

from __future__ import annotations

from typing import Any

from compact.testing_model.rules import Fields, Rejected, Rules, as_fields, as_list, is_number, words
from compact.testing_model.steps import Answer

_ROLES = ("system", "assistant", "user", "function", "tool", "developer")
_PARAMETERS = words(
    "model messages max_tokens max_completion_tokens temperature top_p n stop stream stream_options seed tools "
    "tool_choice parallel_tool_calls response_format presence_penalty frequency_penalty logit_bias logprobs "
    "top_logprobs user metadata store reasoning_effort verbosity service_tier modalities audio prediction "
    "web_search_options prompt_cache_key prompt_cache_retention safety_identifier functions function_call "
    "moderation prompt_cache_options"
)
_OF_MESSAGES = words("role content name tool_calls tool_call_id refusal audio function_call")
_PART_TYPES = ("text", "image_url", "input_audio", "file", "refusal")
_FORMATS = ("text", "json_object", "json_schema")
_ERROR_CODES = {401: "invalid_api_key", 429: "rate_limit_exceeded"}
_FINISH = {"stop": "stop", "length": "length", "refusal": "stop", "filter": "content_filter"}


class OpenAIWire:
    """Chat Completions, without streaming."""

    def key(self, headers: Fields) -> str:
        """The bearer token."""
        return str(headers.get("authorization", "")).removeprefix("Bearer").strip()

    def check(self, body: Fields, headers: Fields, rules: Rules) -> None:
        """Raise Rejected for what the API does not take."""
        for name in body:
            if name not in _PARAMETERS:
                _reject(f"Unrecognized request argument supplied: {name}", "unknown_parameter", name)
        if not isinstance(body.get("model"), str) or not body["model"]:
            _reject("you must provide a model parameter", None, "model")
        if body.get("stream"):
            _reject(
                "This server does not stream: leave out 'stream', or set it to false.", "unsupported_value", "stream"
            )
        _check_messages(body)
        _check_limits(body, rules)
        _check_sampling(body, rules)
        _check_format(body)

    def texts(self, body: Fields) -> list[tuple[str, str]]:
        """Role and text of every message, calls included."""
        found: list[tuple[str, str]] = []
        for message in body["messages"]:
            calls = [call["function"] for call in message.get("tool_calls") or []]
            arguments = [f"{call.get('name', '')} {call.get('arguments', '')}" for call in calls]
            found.append((message["role"], "\n".join([_text(message.get("content")), *arguments]).strip()))
        return found + [("tools", str(tool)) for tool in body.get("tools") or []]

    def limit(self, body: Fields) -> int | None:
        """Either of the two names of the limit."""
        return body.get("max_completion_tokens") or body.get("max_tokens")

    def too_long(self, prompt_tokens: int, limit: int, window_tokens: int) -> Rejected:
        """The error that clients recognise by its code."""
        asked = f"your messages resulted in {prompt_tokens} tokens"
        if limit:
            parts = f"({prompt_tokens} in the messages, {limit} in the completion)"
            asked = f"you requested {prompt_tokens + limit} tokens {parts}"
        message = f"This model's maximum context length is {window_tokens} tokens. However, {asked}."
        return Rejected(message, code="context_length_exceeded", param="messages")

    def answer(self, answer: Answer, number: int, model: str, usage: tuple[int, int]) -> dict[str, Any]:
        """A chat completion with one choice."""
        message = {"role": "assistant", "content": answer.text, "refusal": answer.refusal}
        tokens_in, tokens_out = usage
        return {
            "id": f"chatcmpl-scripted-{number}",
            "object": "chat.completion",
            "created": 1_700_000_000 + number,
            "model": model,
            "system_fingerprint": "fp_scripted",
            "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": _FINISH[answer.finish]}],
            "usage": {
                "prompt_tokens": tokens_in,
                "completion_tokens": tokens_out,
                "total_tokens": tokens_in + tokens_out,
                "prompt_tokens_details": {"cached_tokens": 0},
                "completion_tokens_details": {"reasoning_tokens": answer.reasoning_tokens},
            },
        }

    def error(self, rejected: Rejected) -> dict[str, Any]:
        """OpenAI's error body."""
        kind = "server_error" if rejected.status >= 500 else "invalid_request_error"
        kind = "requests" if rejected.status == 429 else kind
        code = rejected.code or _ERROR_CODES.get(rejected.status)
        if rejected.status == 404 and rejected.param == "model":
            code = "model_not_found"
        return {"error": {"message": rejected.message, "type": kind, "param": rejected.param, "code": code}}


def _reject(message: str, code: str | None, param: str) -> None:
    raise Rejected(message, code=code, param=param)


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in as_list(content) or [] if "text" in part)


# -- messages --------------------------------------------------------------------------------------------------------


def _check_messages(body: Fields) -> None:
    if "messages" not in body:
        _reject("Missing required parameter: 'messages'.", "missing_required_parameter", "messages")
    messages = as_list(body["messages"])
    if messages is None:
        raise Rejected(
            "Invalid type for 'messages': expected an array of objects.", code="invalid_type", param="messages"
        )
    if not messages:
        _reject("Invalid 'messages': empty array. Expected an array with minimum length 1.", "empty_array", "messages")
    for place, message in enumerate(messages):
        _check_message(as_fields(message), f"messages[{place}]")
    _check_pairs(messages)


def _check_message(message: Fields | None, where: str) -> None:
    if message is None:
        raise Rejected(f"Invalid type for '{where}': expected an object.", code="invalid_type", param=where)
    for name in message:
        if name not in _OF_MESSAGES:
            _reject(f"Unknown parameter: '{where}.{name}'.", "unknown_parameter", f"{where}.{name}")
    role = message.get("role")
    if role not in _ROLES:
        known = ", ".join(f"'{each}'" for each in _ROLES)
        _reject(f"Invalid value: '{role}'. Supported values are: {known}.", "invalid_value", f"{where}.role")
    _check_content(message, where)
    if "tool_calls" in message:
        _check_calls(message, where)


def _check_content(message: Fields, where: str) -> None:
    content, param = message.get("content"), f"{where}.content"
    if content is None:
        may_be_null = message["role"] == "assistant" and (message.get("tool_calls") or message.get("refusal"))
        if not may_be_null:
            _reject("Invalid value for 'content': expected a string, got null.", "invalid_type", param)
        return
    if isinstance(content, str):
        return
    parts = as_list(content)
    if parts is None:
        raise Rejected(f"Invalid type for '{param}': expected a string or an array.", code="invalid_type", param=param)
    if not parts:
        _reject(f"Invalid '{param}': empty array. Expected an array with minimum length 1.", "empty_array", param)
    for place, part in enumerate(parts):
        kind = (as_fields(part) or {}).get("type")
        if kind not in _PART_TYPES or (kind == "text" and not isinstance(part.get("text"), str)):
            _reject(f"Invalid value: '{kind}' for '{param}[{place}]'.", "invalid_value", f"{param}[{place}].type")


def _check_calls(message: Fields, where: str) -> None:
    calls = as_list(message["tool_calls"])
    if not calls or message["role"] != "assistant":
        raise Rejected(f"Invalid '{where}.tool_calls'.", code="empty_array", param=f"{where}.tool_calls")
    for place, call in enumerate(calls):
        known = as_fields(call) or {}
        function = as_fields(known.get("function")) or {}
        needed = (known.get("id"), function.get("name"), function.get("arguments"))
        if known.get("type") != "function" or not all(isinstance(value, str) for value in needed):
            param = f"{where}.tool_calls[{place}]"
            _reject(f"Missing required parameter: '{param}'.", "missing_required_parameter", param)


def _check_pairs(messages: list[Any]) -> None:
    """Every call is answered right after it, and every answer has its call."""
    open_calls: set[str] = set()
    for place, message in enumerate(messages):
        if message["role"] == "tool":
            if message.get("tool_call_id") not in open_calls:
                text = "messages with role 'tool' must be a response to a preceding message with 'tool_calls'."
                _reject(f"Invalid parameter: {text}", None, f"messages.[{place}].role")
            open_calls.discard(message["tool_call_id"])
            continue
        _check_answered(open_calls, place)
        open_calls = {call["id"] for call in message.get("tool_calls") or []}
    _check_answered(open_calls, len(messages))


def _check_answered(open_calls: set[str], place: int) -> None:
    if open_calls:
        names = ", ".join(sorted(open_calls))
        _reject(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            f"'tool_call_id'. The following tool_call_ids did not have response messages: {names}",
            None,
            f"messages.[{place}].role",
        )


# -- parameters ------------------------------------------------------------------------------------------------------


def _check_limits(body: Fields, rules: Rules) -> None:
    names = [name for name in ("max_tokens", "max_completion_tokens") if body.get(name) is not None]
    if len(names) == 2:
        text = "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported."
        _reject(text, "invalid_parameter_combination", "max_tokens")
    for name in names:
        value = body[name]
        if not isinstance(value, int) or isinstance(value, bool):
            _reject(f"Invalid type for '{name}': expected an integer.", "invalid_type", name)
        if value < 1:
            _reject(f"Invalid '{name}': expected a value >= 1, but got {value}.", "integer_below_min_value", name)
    if rules.reasoning and "max_tokens" in names:
        text = "'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
        _reject(f"Unsupported parameter: {text}", "unsupported_parameter", "max_tokens")


def _check_sampling(body: Fields, rules: Rules) -> None:
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
    if rules.reasoning and body.get("temperature") not in (None, 1):
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
