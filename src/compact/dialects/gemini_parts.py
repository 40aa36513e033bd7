"""Parts of Gemini contents, in camel case or snake case, as dicts or as objects of the SDK."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, cast

from compact.dialects.dialect import NATIVE, Entry, fields_of, native_of, without
from compact.dialects.turns import FunctionCall, parse_object, read_object, write_json

CALL_KEYS = ("functionCall", "function_call")
RESPONSE_KEYS = ("functionResponse", "function_response")
INLINE_KEYS = ("inlineData", "inline_data")
SIGNATURE_KEYS = ("thoughtSignature", "thought_signature")
_BYTES = frozenset({"data", *SIGNATURE_KEYS})
# With this key, a part of the entry's content is one of the response's own media parts; stores have it by this name.
_MEDIA = "beside"
# The forms in which a response may say what it says: all of it is JSON, or it says nothing.
_AS_JSON = "json"
_NOTHING = "none"
Part: TypeAlias = dict[str, Any]


class NamedField(NamedTuple):
    """A field of a part, and the one of its two names that it has."""

    name: str
    value: Any


@dataclass(frozen=True, slots=True)
class ReadContent:
    """A content as JSON-like data, and what it was: an `object` of the SDK, a dict with `bytes`, or nothing special."""

    fields: dict[str, Any]
    form: str = ""

    @property
    def has_only_dicts(self) -> bool:
        """True if every part is a dict."""
        parts: Sequence[object] = self.fields.get("parts") or ()
        return all(isinstance(part, dict) for part in parts)

    @property
    def parts(self) -> Sequence[Part]:
        """The parts that it has."""
        return self.fields.get("parts") or ()


def find_field(part: Mapping[str, Any], names: Sequence[str]) -> NamedField | None:
    """Return a field under either of its names; None if it is not there."""
    return next((NamedField(name, part[name]) for name in names if part.get(name) is not None), None)


def read_json_content(item: object) -> ReadContent:
    """Return a content as JSON-like data, whatever it is."""
    if not isinstance(item, Mapping):
        dump = getattr(item, "model_dump", None)
        if dump is None or not hasattr(item, "parts"):
            return ReadContent({})
        return ReadContent(dump(mode="json", exclude_none=True), "object")
    seen_bytes: list[bytes] = []
    fields = _as_json(cast(Mapping[str, Any], item), seen_bytes)
    return ReadContent(fields, "bytes" if seen_bytes else "")


def _as_json(value: Any, seen_bytes: list[bytes]) -> Any:
    """Return a value as JSON-like data; bytes become base64 and are added to `seen_bytes`."""
    if isinstance(value, bytes):
        seen_bytes.append(value)
        return base64.b64encode(value).decode()
    if isinstance(value, Mapping):
        return {key: _as_json(inner, seen_bytes) for key, inner in cast(Mapping[str, Any], value).items()}
    if isinstance(value, list | tuple):
        return [_as_json(inner, seen_bytes) for inner in cast(Sequence[Any], value)]
    if hasattr(value, "model_dump"):
        return _as_json(value.model_dump(mode="python", exclude_none=True), seen_bytes)
    return value


def with_bytes(value: Any, key: str = "") -> Any:
    """Return the same data with bytes where a dict of the SDK has them."""
    if isinstance(value, dict):
        return {name: with_bytes(inner, name) for name, inner in cast(dict[str, Any], value).items()}
    if isinstance(value, list):
        return [with_bytes(inner) for inner in cast(list[Any], value)]
    return base64.b64decode(value) if key in _BYTES and isinstance(value, str) else value


def as_object(item: Any, like: object) -> object:
    """Return a content as an object of the SDK, of the same class as `like` if that is one."""
    if not isinstance(item, dict):
        return item
    kind: Any = type(like)
    if not hasattr(like, "parts"):
        from google.genai.types import Content as kind  # only for those who use its objects

    # As JSON: only there is base64 text taken for bytes.
    return kind.model_validate_json(json.dumps(item))


def read_part(part: Part) -> Part:
    """Return a part of the content of an entry."""
    inline = find_field(part, INLINE_KEYS)
    if inline and str(inline.value.get("mimeType", inline.value.get("mime_type"))).startswith("image/"):
        return {"type": "image", **part}
    return {"type": "text" if "text" in part else next(iter(part), "part"), **part}


def read_content(parts: Sequence[Part]) -> str | list[Part]:
    """Return the content of an entry; one plain text is that text."""
    if len(parts) == 1 and parts[0].keys() == {"text"} and parts[0]["text"]:
        return parts[0]["text"]
    return [read_part(part) for part in parts]


def write_content(content: Any) -> list[Part]:
    """Return the parts that an entry's content stands for."""
    if isinstance(content, str):
        return [{"text": content}] if content else []
    return [without(part, "type") for part in content or ()]


def read_call(part: Part, fallback_id: str) -> tuple[FunctionCall, dict[str, Any]]:
    """Return the call of a part, and whatever else the part has."""
    key, call = find_field(part, CALL_KEYS) or NamedField(CALL_KEYS[0], {})
    rest: dict[str, Any] = {"key": key, "part": without(part, key), "call": without(call, "id", "name", "args")}
    if call.get("id"):
        rest["id"] = True
    if call.get("args") is not None:
        rest["args"] = True
    arguments = write_json(call.get("args") or {})
    return FunctionCall(call.get("id") or fallback_id, call.get("name") or "", arguments), _without_empty(rest)


def write_call_part(call: FunctionCall, rest: Mapping[str, Any]) -> Part:
    """Return the part of a call."""
    written: dict[str, Any] = {"id": call.id} if rest.get("id") else {}
    arguments = read_object(call.arguments)
    written |= {"name": call.name, **({"args": arguments} if arguments or rest.get("args") else {})}
    return {rest.get("key", CALL_KEYS[0]): {**written, **rest.get("call", {})}, **rest.get("part", {})}


def read_response(part: Part, call_id: str) -> Entry:
    """Return the entry of a result: the one text in it, or all of it as JSON."""
    key, response = find_field(part, RESPONSE_KEYS) or NamedField(RESPONSE_KEYS[0], {})
    media: Sequence[Part] = response.get("parts") or []
    native = {"key": key, "part": without(part, key), "rest": without(response, "id", "name", "response", "parts")}
    native = _without_empty({**native, "name": response.get("name"), "id": bool(response.get("id"))})
    form, text, others = _read_answer(response.get("response"))
    native |= {"form": form} if form else {}
    parts: list[Part] = [{"type": "fields", "fields": others}] if others else []
    parts += ({**read_part(one), _MEDIA: True} for one in media)
    content: Any = [{"type": "text", "text": text}, *parts] if parts else text
    return {"role": "tool", "tool_call_id": call_id, "content": content, NATIVE: native}


def _read_answer(answer: Any) -> tuple[Any, str, dict[str, Any]]:
    """Return the form of an answer, its text and its other fields: the longest text in it, or all of it as JSON."""
    if answer is None:
        return _NOTHING, "", {}
    fields = cast(dict[str, Any], answer) if isinstance(answer, dict) else {}
    texts = {name: value for name, value in fields.items() if isinstance(value, str)}
    if not texts:
        return _AS_JSON, write_json(cast(object, answer)), {}
    name = max(texts, key=lambda name: len(texts[name]))
    return ("" if name == "result" else {"key": name}), texts[name], without(fields, name)


def is_own_response(entry: Entry) -> bool:
    """Return True for what was a response before; a session may have been in another dialect."""
    return native_of(entry).get("key") in RESPONSE_KEYS


def write_response(entry: Entry, name: str = "") -> Part:
    """Return the part of a result; a text that was put in its place is its `result`."""
    native, content = native_of(entry) if is_own_response(entry) else dict[str, Any](), entry["content"]
    parts: list[Part] = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
    media = [without(part, "type", _MEDIA) for part in parts if part.get(_MEDIA)]
    text = "\n".join(part["text"] for part in parts if part["type"] == "text" and not part.get(_MEDIA))
    others = fields_of(next((part["fields"] for part in parts if part["type"] == "fields"), None))
    response: dict[str, Any] = {"id": entry["tool_call_id"]} if native.get("id") else {}
    response |= {"name": native.get("name") or name, **native.get("rest", {})}
    response |= _write_answer(text, native.get("form", ""), others) | ({"parts": media} if media else {})
    return {native.get("key", RESPONSE_KEYS[0]): response, **native.get("part", {})}


def _write_answer(text: str, form: Any, others: Mapping[str, Any]) -> dict[str, Any]:
    if form == _NOTHING and not text:
        return {}
    if form == _AS_JSON:
        answer = parse_object(text)
        return {"response": {"result": text} if answer is None else answer}
    return {"response": {form["key"] if isinstance(form, Mapping) else "result": text, **others}}


def _without_empty(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value}
