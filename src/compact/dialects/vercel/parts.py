"""Calls and results of the Vercel AI SDK as calls and results of the log, and back.

Version 5 and later write `input` and `output: {type, value}`; version 4 wrote `args` and `result`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

from compact.core.json_data import is_list, is_mapping
from compact.dialects.dialect import NATIVE, Entry, from_json, native_of, to_json, without
from compact.dialects.turns import FunctionCall, read_object, write_call, write_json

Part: TypeAlias = dict[str, Any]

CALL, RESULT = "tool-call", "tool-result"
REQUEST, RESPONSE = "tool-approval-request", "tool-approval-response"
_INPUTS = ("input", "args")
_OUTPUTS = ("output", "result")
# Under this name the entry of a result keeps how its part was written: the key, and the type of the output.
FORM = "result"
_TEXTS = ("text", "error-text")
_DATA = ("json", "error-json")


def kind_of(part: object) -> str:
    """Return the type of a part; "" for what has none."""
    kind = part.get("type") if is_mapping(part) else None
    return kind if isinstance(kind, str) else ""


def id_of(part: object) -> str:
    """Return the id by which a call and its result belong together."""
    return str(part.get("toolCallId") or "") if is_mapping(part) else ""


def read_call(part: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a call as the log has it, and whatever else its part has."""
    key = next((name for name in _INPUTS if name in part), "")
    value: Any = to_json(part.get(key)) if key else dict[str, Any]()
    rest = to_json(without(part, "type", "toolCallId", "toolName", key))
    extra: dict[str, Any] = {"part": rest} if rest else {}
    extra |= {} if key == _INPUTS[0] else {"key": key}
    extra |= {} if is_mapping(value) else {"is_value": True}
    return write_call(FunctionCall(id_of(part), str(part.get("toolName") or ""), write_json(value))), extra


def write_call_part(call: FunctionCall, extra: Mapping[str, Any]) -> Part:
    """Return the part of a call."""
    value = _value_of(call.arguments) if extra.get("is_value") else read_object(call.arguments)
    key = extra.get("key", _INPUTS[0])
    given = {key: from_json(value)} if key or value else {}
    return {"type": CALL, "toolCallId": call.id, "toolName": call.name, **given, **from_json(extra.get("part", {}))}


def read_result(part: Mapping[str, Any]) -> Entry:
    """Return the entry of a result: its text, its parts, or its data as JSON."""
    key = next((name for name in _OUTPUTS if name in part), "")
    content, form = _read_output(part.get(key)) if key == _OUTPUTS[0] else _read_value(part.get(key))
    form |= {"key": key, "name": part.get("toolName")}
    rest = to_json(without(part, "type", "toolCallId", "toolName", key))
    native: dict[str, Any] = {FORM: form, **({"part": rest} if rest else {})}
    return {"role": "tool", "tool_call_id": id_of(part), "content": content, NATIVE: native}


def is_own_result(entry: Entry) -> bool:
    """Return True for what was a result before; a session may have been in another dialect."""
    form = native_of(entry).get(FORM)
    return is_mapping(form) and "name" in form


def write_result(entry: Entry, name: str = "") -> Part:
    """Return the part of a result; a text that was put in its place is a text."""
    native = native_of(entry) if is_own_result(entry) else dict[str, Any]()
    form: Mapping[str, Any] = native.get(FORM, {})
    key = form.get("key", _OUTPUTS[0])
    content = entry.get("content")
    written = _write_output(content, form) if key == _OUTPUTS[0] else _write_value(content, form)
    given = {key: from_json(written)} if key else {}
    tool = form.get("name", name) if form else name
    part: Part = {"type": RESULT, "toolCallId": entry["tool_call_id"], "toolName": tool}
    return {**part, **given, **from_json(native.get("part", {}))}


def _read_output(output: object) -> tuple[Any, dict[str, Any]]:
    """Return the content of an `output`, and what is needed to write it again."""
    if not is_mapping(output):
        return _read_value(output)
    kind, value = output.get("type"), output.get("value")
    form: dict[str, Any] = {"type": kind, "rest": to_json(without(output, "type", "value"))}
    if kind in _TEXTS and isinstance(value, str):
        return value, form
    if kind == "content" and is_list(value) and value and all(map(is_mapping, value)):
        return [to_json(part) for part in value], form
    if kind == "execution-denied":
        return str(output.get("reason") or ""), form
    return write_json(to_json(value)), {**form, "is_value": True, **({} if "value" in output else {"none": True})}


def _write_output(content: Any, form: Mapping[str, Any]) -> Any:
    if "type" not in form:
        # A result that we made up, or an output that was no object.
        return _write_value(content, form) if form else {"type": "text", "value": _text_of(content)}
    kind, rest = form["type"], form.get("rest", {})
    if kind == "execution-denied":
        return {"type": kind, **rest} if content == str(rest.get("reason") or "") else _as_text(content, kind)
    if is_list(content):
        return {"type": "content", "value": list(content), **rest}
    if form.get("is_value"):
        value = _value_of(content)
        if value is content:  # it was replaced: no data any more, but still a text
            return _as_text(content, str(kind))
        return {"type": kind, **({} if form.get("none") else {"value": value}), **rest}
    return {"type": kind, "value": content, **rest} if kind in _TEXTS else _as_text(content, str(kind))


def _as_text(content: Any, kind: str) -> dict[str, Any]:
    is_error = kind.startswith("error") or kind == "execution-denied"
    return {"type": "error-text" if is_error else "text", "value": _text_of(content)}


def _read_value(value: object) -> tuple[Any, dict[str, Any]]:
    if isinstance(value, str):
        return value, {}
    return write_json(to_json(value)), {"is_value": True}


def _write_value(content: Any, form: Mapping[str, Any]) -> Any:
    return _value_of(content) if form.get("is_value") else content


def _value_of(text: Any) -> Any:
    """Return the value that a text is as JSON; the text itself if it is none."""
    try:
        return json.loads(text) if isinstance(text, str) else text
    except (ValueError, RecursionError):
        return text


def _text_of(content: Any) -> str:
    return content if isinstance(content, str) else write_json(content)
