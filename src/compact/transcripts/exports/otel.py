"""OpenTelemetry: spans in OTLP JSON with the attributes of the conventions for generative AI.

Each call of the model has the whole prompt. The call with the most messages of a conversation (or of a trace, where
there is no conversation), and the last of those, is taken as the session, with its answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from compact.core.json_data import is_list, is_mapping
from compact.transcripts.builder import Call, LogBuilder
from compact.transcripts.forms.chat_messages import add_chat_message
from compact.transcripts.logs import AgentLog
from compact.transcripts.parts import Content, Fields, content_of, list_of, mapping_of, text_field, text_of

NAME = "OpenTelemetry"
_EVENTS = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
    "gen_ai.choice": "assistant",
}
# Attributes of OpenLLMetry before the conventions had messages: gen_ai.prompt.0.role and so on.
_NUMBERED = re.compile(r"gen_ai\.(prompt|completion)\.(\d+)\.(.+)")


def recognises(head: Sequence[object]) -> bool:
    """Return True for an export of spans."""
    return any(is_mapping(value) and ("resourceSpans" in value or "resource_spans" in value) for value in head)


def read(items: Iterable[tuple[str, Any]]) -> list[AgentLog]:
    """Return a session for each conversation or trace that called a model."""
    best: dict[str, tuple[int, int, list[Fields], Fields, str]] = {}
    for place, value in items:
        for span in _spans(mapping_of(value)):
            attributes = _attributes(span.get("attributes"))
            messages = _messages(span, attributes)
            if not messages:
                continue
            trace = text_field(attributes, "gen_ai.conversation.id") or text_field(span, "traceId", "trace_id")
            started = int(span.get("startTimeUnixNano", span.get("start_time_unix_nano", 0)) or 0)
            if trace not in best or (len(messages), started) >= best[trace][:2]:
                best[trace] = (len(messages), started, messages, attributes, place)
    return [_session(trace, messages, attributes, place) for trace, (_, _, messages, attributes, place) in best.items()]


def _spans(value: Fields) -> Iterable[Fields]:
    for resource in list_of(value.get("resourceSpans", value.get("resource_spans"))):
        fields = mapping_of(resource)
        for scope in list_of(fields.get("scopeSpans", fields.get("scope_spans"))):
            yield from map(mapping_of, list_of(mapping_of(scope).get("spans")))


def _attributes(pairs: object) -> dict[str, Any]:
    return {str(pair.get("key")): _value(pair.get("value")) for pair in list_of(pairs) if is_mapping(pair)}


def _value(value: object) -> Any:
    """Return a value of OTLP as plain data: it is wrapped in an object that names its type."""
    fields = mapping_of(value)
    if is_mapping(fields.get("arrayValue")):
        return [_value(one) for one in list_of(fields["arrayValue"].get("values"))]
    if is_mapping(fields.get("kvlistValue")):
        return _attributes(fields["kvlistValue"].get("values"))
    if "intValue" in fields:
        return int(fields["intValue"])
    return next(iter(fields.values()), None)


def _messages(span: Fields, attributes: Fields) -> list[Fields]:
    """Return prompt and answer of a span: from its attributes, or from its events."""
    asked = [
        message
        for key in ("gen_ai.input.messages", "gen_ai.output.messages")
        for message in map(mapping_of, _data(attributes.get(key)))
    ]
    return asked or _from_events(span) or _from_numbers(attributes)


def _data(value: object) -> Sequence[Any]:
    """Return a list that is kept as JSON text, or as data."""
    if isinstance(value, str):
        try:
            return list_of(json.loads(value))
        except ValueError:
            return ()
    return list_of(value)


def _from_events(span: Fields) -> list[Fields]:
    found: list[Fields] = []
    for event in map(mapping_of, list_of(span.get("events"))):
        attributes = _attributes(event.get("attributes"))
        name = text_field(event, "name")
        if name == "gen_ai.client.inference.operation.details":
            return _messages({}, attributes)
        if name in _EVENTS:
            inner = mapping_of(attributes.get("message")) or attributes
            found.append({"role": _EVENTS[name], **inner, "tool_call_id": inner.get("id")})
    return found


def _from_numbers(attributes: Fields) -> list[Fields]:
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for key, value in attributes.items():
        match = _NUMBERED.fullmatch(key)
        if match is None:
            continue
        message = found.setdefault((match[1], int(match[2])), {"role": "assistant"})
        call = re.fullmatch(r"tool_calls\.(\d+)\.(id|name|arguments)", match[3])
        if call is None:
            message[match[3]] = value
        else:
            calls: dict[int, dict[str, Any]] = message.setdefault("numbered", {})
            calls.setdefault(int(call[1]), {})[call[2]] = value
    for message in found.values():
        message["tool_calls"] = [call for _, call in sorted(message.pop("numbered", {}).items())]
    # The prompt comes before the completion.
    return [found[key] for key in sorted(found, key=lambda key: (key[0] != "prompt", key[1]))]


def _session(trace: str, messages: Sequence[Fields], attributes: Fields, place: str) -> AgentLog:
    model = text_field(attributes, "gen_ai.response.model", "gen_ai.request.model")
    log = LogBuilder(NAME, session_id=trace, model=model)
    system = [mapping_of(part) for part in _data(attributes.get("gen_ai.system_instructions"))]
    log.instructions = "\n".join(text_field(part, "content", "text") for part in system)
    for message in messages:
        if is_list(message.get("parts")):
            _add_parts(log, message, place)
        else:
            add_chat_message(log, message, place=place)
    return log.build()


def _add_parts(log: LogBuilder, message: Fields, place: str) -> None:
    """Add a message of the conventions: parts with text, calls and their responses."""
    calls: list[Call] = []
    shown: list[object] = []
    for part in map(mapping_of, message["parts"]):
        kind = part.get("type")
        if kind == "tool_call":
            calls.append(Call(text_field(part, "id"), text_field(part, "name"), part.get("arguments", {})))
        elif kind == "tool_call_response":
            answer = part.get("response", part.get("result"))
            log.result(text_field(part, "id"), _response(answer), place=place)
        elif kind in ("reasoning", "thinking"):
            log.thinking += 1
        elif kind == "text":
            shown.append({"type": "text", "text": text_field(part, "content", "text")})
        elif kind == "blob":
            shown.append(
                {"type": "image", "source": {"media_type": part.get("mime_type"), "data": part.get("content")}}
            )
        else:
            shown.append(part)
    content = content_of(shown) if shown else None
    role = text_field(message, "role")
    if role == "assistant":
        log.answer(content, calls)
    else:
        log.say(role if role in ("system", "developer") else "user", content)


def _response(answer: object) -> Content:
    return answer if isinstance(answer, str) else text_of(answer) if is_list(answer) else content_of(answer)
