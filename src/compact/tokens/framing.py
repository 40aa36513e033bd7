"""What a message costs beyond its bare text: roles, names, tool calls, parts, images.

The figures per message and per name are OpenAI's published ones for chat completions; those for calls and results
are what its usage reports show. Tool call ids never reach the model and cost nothing.
"""

from __future__ import annotations

import json
import re
import reprlib
from collections.abc import Callable, Container, Mapping
from typing import Any, TypeAlias

from compact.core.json_data import is_list, is_mapping
from compact.core.messages.attachments import Attachment, attachments_of, payload_of, read_attachment
from compact.core.messages.message import Content, Message
from compact.tokens.documents import attachment_tokens
from compact.tokens.images import IMAGE_TYPES, ImageRule, image_tokens

CountText: TypeAlias = Callable[[str], int]

MESSAGE_TOKENS = 3
NAME_TOKENS = 1
TOOL_CALL_TOKENS = 6
TOOL_RESULT_TOKENS = 3
# Every reply is primed with this once per prompt; message counts leave it out so that they add up.
REPLY_PRIMING_TOKENS = 3
# A file's or recording's bytes say little about its tokens: charge a page of a document.
OPAQUE_PAYLOAD_TOKENS = 1500

_TEXT_KEYS = {
    "text": "text",
    "input_text": "text",
    "output_text": "text",
    "summary_text": "text",
    "reasoning_text": "text",
    "refusal": "refusal",
    "thinking": "thinking",
}
_CALL_TYPES = frozenset({"tool_use", "server_tool_use", "function_call"})
_RESULT_TYPES = frozenset({"tool_result", "function_call_output"})
_ENCRYPTED_TYPES = frozenset({"reasoning", "redacted_thinking"})
# A run of base64 in JSON text, line ends included. The look-behind starts it at a run's start only: linear time.
_PAYLOAD = re.compile(r"(?<![A-Za-z0-9+/_\\-])(?:[A-Za-z0-9+/_-]|\\[rn]){512,}={0,2}")


def message_tokens(message: Message, count_text: CountText, *, image_rule: ImageRule = "largest") -> int:
    """Return the tokens of a message in a prompt: framing, role, name, content, tool calls."""
    tokens = MESSAGE_TOKENS + count_text(message.role)
    if message.name:
        tokens += NAME_TOKENS + count_text(message.name)
    if message.tool_call_id is not None:
        tokens += TOOL_RESULT_TOKENS
    for call in message.tool_calls:
        tokens += call_tokens(call.name, call.arguments, count_text)
    # Some dialects keep a call both as a part and as a tool call; the model sees it once.
    counted_ids = {call.id for call in message.tool_calls}
    tokens += content_tokens(_beside(message), count_text, image_rule=image_rule)
    if isinstance(message.content, tuple):
        # A long PDF is read once in the life of its message.
        known = {attachment.place: attachment for attachment in attachments_of(message)}
        parts = ((part, known.get(place)) for place, part in enumerate(message.content))
        return tokens + sum(_part_tokens(part, count_text, image_rule, counted_ids, found) for part, found in parts)
    return tokens + content_tokens(message.content, count_text)


def _beside(message: Message) -> Content:
    """Return what stays with a message whatever is cleared: thinking, the work of built-in tools, text around calls."""
    original: object = message.original
    native = original.get("native") if is_mapping(original) else None
    if not is_mapping(native):
        return None
    kept, around = native.get("beside"), native.get("around_calls")
    if isinstance(around, str):
        return ({"type": "text", "text": around},)
    return tuple(kept) if is_list(kept) else None


def call_tokens(name: str, arguments: str, count_text: CountText) -> int:
    """Return the tokens of one tool call, id left out."""
    return TOOL_CALL_TOKENS + count_text(name) + count_text(arguments)


def content_tokens(content: Content, count_text: CountText, *, image_rule: ImageRule = "largest") -> int:
    """Return the tokens of a message's content, without framing."""
    if content is None:
        return 0
    if isinstance(content, str):
        return count_text(content)
    return sum(_part_tokens(part, count_text, image_rule) for part in content)


def json_text(value: object) -> str:
    """Return the value as JSON, or as near to it as a value that is no JSON can come."""
    try:
        return json.dumps(value, ensure_ascii=False, default=_as_dict_or_text)
    except (TypeError, ValueError, RecursionError):
        return reprlib.repr(value)


def _as_dict_or_text(value: object) -> object:
    return dict(value) if is_mapping(value) else str(value)


def _part_tokens(
    part: object,
    count_text: CountText,
    image_rule: ImageRule,
    counted_ids: Container[str] = (),
    attachment: Attachment | None = None,
) -> int:
    """Return the tokens of a part; calls in `counted_ids` are not counted again."""
    if not is_mapping(part):
        return count_text(part if isinstance(part, str) else json_text(part))
    kind = str(part.get("type", ""))
    if kind in IMAGE_TYPES:
        return image_tokens(part, image_rule)
    if attachment := attachment or read_attachment(part):
        return attachment_tokens(part, attachment, payload_of(part), count_text, image_rule)
    if kind in _TEXT_KEYS and isinstance(text := part.get(_TEXT_KEYS[kind]), str):
        return count_text(text)
    if kind in _CALL_TYPES:
        return _call_part_tokens(part, count_text, counted_ids)
    if kind in _RESULT_TYPES:
        return TOOL_RESULT_TOKENS + _nested_tokens(part.get("content", part.get("output")), count_text, image_rule)
    return _opaque_tokens(part, count_text)


def _call_part_tokens(part: Mapping[str, Any], count_text: CountText, counted_ids: Container[str]) -> int:
    if str(part.get("call_id") or part.get("id")) in counted_ids:
        return 0
    arguments = part.get("arguments", part.get("input"))
    written = arguments if isinstance(arguments, str) else json_text(arguments)
    return call_tokens(str(part.get("name", "")), written, count_text)


def _nested_tokens(value: object, count_text: CountText, image_rule: ImageRule) -> int:
    """Return the tokens of what a tool result part holds: a text or further parts."""
    if value is None or isinstance(value, str):
        return content_tokens(value, count_text)
    parts: tuple[Any, ...] = tuple(value) if is_list(value) else (value,)
    return content_tokens(parts, count_text, image_rule=image_rule)


def _opaque_tokens(part: Mapping[str, Any], count_text: CountText) -> int:
    """Return the tokens of a part we do not know by its JSON text, binary payloads at a flat rate."""
    fields = {key: value for key, value in part.items() if key not in ("signature", "cache_control")}
    payload_chars: list[int] = []

    def take_out(found: re.Match[str]) -> str:
        payload_chars.append(len(found[0]))
        return ""

    tokens = count_text(_PAYLOAD.sub(take_out, json_text(fields)))
    if str(part.get("type", "")) in _ENCRYPTED_TYPES:
        # Encrypted reasoning is as long as the text inside: three bytes in four characters, four bytes a token.
        return tokens + sum(payload_chars) * 3 // 16
    return tokens + len(payload_chars) * OPAQUE_PAYLOAD_TOKENS
