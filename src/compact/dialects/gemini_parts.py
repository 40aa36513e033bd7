"""Parts of Gemini contents, in camel case or snake case, as dicts or as objects of the SDK."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from compact.dialects.dialect import Entry, without
from compact.dialects.interleaving import native_of, read_object, write_json

CALL = ("functionCall", "function_call")
RESPONSE = ("functionResponse", "function_response")
INLINE = ("inlineData", "inline_data")
SIGNATURE = ("thoughtSignature", "thought_signature")
_BYTES = frozenset({"data", *SIGNATURE})
Part = dict[str, Any]


def found(part: Mapping[str, Any], names: Sequence[str]) -> tuple[str, dict[str, Any]] | None:
    """A field under either of its names, and the name it has."""
    return next(((name, part[name]) for name in names if part.get(name) is not None), None)


def plain_content(item: object) -> tuple[dict[str, Any], str]:
    """A content as JSON-like data, and what it was: an `object` of the SDK, a dict with `bytes`, or nothing special."""
    if not isinstance(item, Mapping):
        dump = getattr(item, "model_dump", None)
        return (dump(mode="json", exclude_none=True), "object") if dump and hasattr(item, "parts") else ({}, "")
    seen: list[object] = []
    plain = _plain(cast(Mapping[str, Any], item), seen)
    return cast(dict[str, Any], plain), "bytes" if seen else ""


def _plain(value: Any, seen: list[object]) -> Any:
    if isinstance(value, bytes):
        seen.append(value)
        return base64.b64encode(value).decode()
    if isinstance(value, Mapping):
        return {key: _plain(inner, seen) for key, inner in cast(Mapping[str, Any], value).items()}
    if isinstance(value, list | tuple):
        return [_plain(inner, seen) for inner in cast(Sequence[Any], value)]
    if hasattr(value, "model_dump"):
        return _plain(value.model_dump(mode="python", exclude_none=True), seen)
    return value


def with_bytes(value: Any, key: str = "") -> Any:
    """The same data with bytes where a dict of the SDK has them."""
    if isinstance(value, dict):
        return {name: with_bytes(inner, name) for name, inner in cast(dict[str, Any], value).items()}
    if isinstance(value, list):
        return [with_bytes(inner) for inner in cast(list[Any], value)]
    return base64.b64decode(value) if key in _BYTES and isinstance(value, str) else value


def as_object(item: Any, like: object) -> object:
    """A content as an object of the SDK."""
    if not isinstance(item, dict):
        return item
    kind: Any = type(like)
    if not hasattr(like, "parts"):
        from google.genai.types import Content as kind  # only for those who use its objects

    # As JSON: only there is base64 text taken for bytes.
    return kind.model_validate_json(json.dumps(item))


def read_part(part: Part) -> Part:
    """A part of the content of an entry."""
    inline = found(part, INLINE)
    if inline and str(inline[1].get("mimeType", inline[1].get("mime_type"))).startswith("image/"):
        return {"type": "image", **part}
    return {"type": "text" if "text" in part else next(iter(part), "part"), **part}


def read_content(parts: Sequence[Part]) -> str | list[Part]:
    """The content of an entry; one plain text is that text."""
    if len(parts) == 1 and parts[0].keys() == {"text"} and parts[0]["text"]:
        return parts[0]["text"]
    return [read_part(part) for part in parts]


def write_content(content: Any) -> list[Part]:
    """The parts that an entry's content stands for."""
    if isinstance(content, str):
        return [{"text": content}] if content else []
    return [without(part, "type") for part in content or ()]


def read_call(part: Part, fallback_id: str) -> tuple[tuple[str, str, str], dict[str, Any]]:
    """Id, name and arguments of a call, and whatever else its part has."""
    key, call = found(part, CALL) or (CALL[0], {})
    rest = {"key": key, "part": without(part, key), "call": without(call, "id", "name", "args")}
    if call.get("id"):
        rest["id"] = True
    if call.get("args") is not None:
        rest["args"] = True
    arguments = write_json(call.get("args") or {})
    return (call.get("id") or fallback_id, call.get("name") or "", arguments), _without_empty(rest)


def write_call(call_id: str, name: str, arguments: str, rest: Mapping[str, Any]) -> Part:
    """The part of a call."""
    call: dict[str, Any] = {"id": call_id} if rest.get("id") else {}
    args = read_object(arguments)
    call |= {"name": name, **({"args": args} if args or rest.get("args") else {})}
    return {rest.get("key", CALL[0]): {**call, **rest.get("call", {})}, **rest.get("part", {})}


def read_response(part: Part, call_id: str) -> Entry:
    """A result: the one text in it, or all of it as JSON."""
    key, response = found(part, RESPONSE) or (RESPONSE[0], {})
    said, media = response.get("response"), response.get("parts") or []
    native = {"key": key, "part": without(part, key), "rest": without(response, "id", "name", "response", "parts")}
    native = _without_empty({**native, "name": response.get("name"), "id": bool(response.get("id"))})
    form, text, others = _read_said(said)
    native |= {"form": form} if form else {}
    parts: list[Part] = [{"type": "fields", "fields": others}] if others else []
    parts += ({**read_part(one), "beside": True} for one in media)
    content: Any = [{"type": "text", "text": text}, *parts] if parts else text
    return {"role": "tool", "tool_call_id": call_id, "content": content, "native": native}


def _read_said(said: Any) -> tuple[Any, str, dict[str, Any]]:
    """How a response says what it says: the longest text in it, under its name, and the other fields; or JSON."""
    if said is None:
        return "none", "", {}
    texts = {name: value for name, value in said.items() if isinstance(value, str)} if isinstance(said, dict) else {}
    if not texts:
        return "json", write_json(said), {}
    name = max(texts, key=lambda name: len(texts[name]))
    return ("" if name == "result" else {"key": name}), texts[name], without(said, name)


def write_response(entry: Entry, name: str = "") -> Part:
    """The part of a result; a text that was put in its place is its `result`."""
    native, content = native_of(entry), entry["content"]
    parts: list[Part] = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
    media = [without(part, "type", "beside") for part in parts if part.get("beside")]
    text = "\n".join(part["text"] for part in parts if part["type"] == "text" and not part.get("beside"))
    others = next((part["fields"] for part in parts if part["type"] == "fields"), {})
    response: dict[str, Any] = {"id": entry["tool_call_id"]} if native.get("id") else {}
    response |= {"name": native.get("name") or name, **native.get("rest", {})}
    response |= _write_said(text, native.get("form", ""), others) | ({"parts": media} if media else {})
    return {native.get("key", RESPONSE[0]): response, **native.get("part", {})}


def _write_said(text: str, form: Any, others: Mapping[str, Any]) -> dict[str, Any]:
    if form == "none" and not text:
        return {}
    if form == "json":
        said = read_object(text)
        return {"response": said if "shortened" not in said else {"result": text}}
    return {"response": {form["key"] if isinstance(form, Mapping) else "result": text, **others}}


def _without_empty(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value}
