"""Content of all the formats as Chat Completions has it: a text, or parts that are texts and images."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from compact.core.json_data import is_list, is_mapping

Fields: TypeAlias = Mapping[str, Any]
Content: TypeAlias = str | list[dict[str, Any]] | None

_TEXTS = frozenset({"text", "input_text", "output_text", "summary_text", "refusal"})


def content_of(value: object) -> Content:
    """Return content of any format: a text if it is only text, parts if an image or a file is among them."""
    if value is None or isinstance(value, str):
        return value
    items = value if is_list(value) else [value]
    parts = [part for part in map(part_of, items) if part is not None]
    if all(part["type"] == "text" for part in parts):
        return "\n".join(part["text"] for part in parts)
    return parts


def part_of(item: object) -> dict[str, Any] | None:
    """Return one part; None if there is nothing in it to show."""
    if isinstance(item, str):
        return {"type": "text", "text": item}
    if not is_mapping(item):
        return None
    kind = item.get("type")
    if kind in _TEXTS or (kind is None and isinstance(item.get("text"), str)):
        return {"type": "text", "text": str(item.get("text", item.get("refusal", "")))}
    image = _image_address(item)
    if image:
        return {"type": "image_url", "image_url": {"url": image}}
    data = item.get("inlineData") or item.get("inline_data")
    if is_mapping(data) or kind in ("document", "file", "input_file", "fileData"):
        name = item.get("title") or item.get("filename") or item.get("mime") or "attached"
        return {"type": "text", "text": f"[file: {name}]"}
    # What nobody knows is shown as it is: it was said, and is not lost.
    return {"type": "text", "text": json.dumps(item, ensure_ascii=False)}


def _image_address(item: Fields) -> str:
    """Return the address of an image in any of the formats; empty if the part is none."""
    url = item.get("image_url")
    if is_mapping(url):
        return str(url.get("url", ""))
    if isinstance(url, str):
        return url
    if item.get("type") == "file" and str(item.get("mime", "")).startswith("image/"):
        return str(item.get("url", ""))
    source: object = item.get("source") or item.get("inlineData") or item.get("inline_data") or item
    if not is_mapping(source):
        return ""
    if source.get("type") == "url" and item.get("type") == "image":
        return str(source.get("url", ""))
    media = source.get("media_type") or source.get("mimeType") or source.get("mime_type") or ""
    is_image = str(media).startswith("image/") and isinstance(source.get("data"), str)
    return f"data:{media};base64,{source['data']}" if is_image else ""


def text_of(value: object) -> str:
    """Return the text of content of any format, without its images."""
    content = content_of(value)
    if isinstance(content, list):
        return "\n".join(part["text"] for part in content if part["type"] == "text")
    return content or ""


def is_empty(content: Content) -> bool:
    """Return True for content that says nothing."""
    return content is None or content == [] or (isinstance(content, str) and not content)


def joined(first: Content, second: Content) -> Content:
    """Return the content of two pieces of one message."""
    if is_empty(first) or is_empty(second):
        return second if is_empty(first) else first
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n{second}"
    return [*_as_parts(first), *_as_parts(second)]


def _as_parts(content: Content) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content or []


def mapping_of(value: object) -> Fields:
    """Return a value if it is an object, and an empty one otherwise."""
    return value if is_mapping(value) else {}


def list_of(value: object) -> Sequence[Any]:
    """Return a value if it is a list, and an empty one otherwise."""
    return value if is_list(value) else ()


def text_field(fields: Fields, *names: str) -> str:
    """Return the first of some fields that is a text."""
    return next((fields[name] for name in names if isinstance(fields.get(name), str)), "")
