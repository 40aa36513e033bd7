"""Attachments: the pictures, documents and recordings in the content of a message, in every form that parts have.

Entries keep the parts of their own dialect, so this is the one place that knows how each of them writes a file: bytes
as base64, a web address, the id of an uploaded file, or the text of a document.
"""

from __future__ import annotations

import binascii
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from compact.core.json_data import is_mapping
from compact.core.messages.message import Message, Part
from compact.core.messages.pdf_pages import pdf_pages
from compact.core.plurals import quantity

IMAGE, DOCUMENT, AUDIO, VIDEO, FILE = "image", "document", "audio", "video", "file"

# What the type of a part says; the media type, if there is one, says it better.
_KINDS: Mapping[str, str] = {
    **dict.fromkeys(("image_url", "input_image", "image", "image-url", "computer_screenshot"), IMAGE),
    **dict.fromkeys(("document", "document-url"), DOCUMENT),
    **dict.fromkeys(("input_audio", "audio", "audio-url"), AUDIO),
    **dict.fromkeys(("video", "video_url", "video-url"), VIDEO),
    **dict.fromkeys(("file", "input_file", "container_upload", "binary", "uploaded-file"), FILE),
    **dict.fromkeys(("inlineData", "inline_data", "fileData", "file_data"), FILE),
    # Parts that hold the content of a framework, or a block of Converse, as it came.
    **dict.fromkeys(("content", "block", "media"), ""),
}
# The keys of parts, and of what is nested in them, by what they hold; the first that is there counts.
_BASE64 = ("base64", "file_data", "data", "$bytes", "bytes")
_ADDRESSES = ("url", "file_url", "fileUri", "file_uri", "uri", "image_url", "video_url", "image")
_IDS = ("file_id", "fileId")
_NAMES = ("filename", "file_name", "displayName", "display_name", "title", "name")
_MEDIA_TYPES = ("media_type", "mime_type", "mimeType", "mediaType", "format")
# Chosen: a document in a block of Converse lies three levels deep, its bytes one deeper.
_MAX_DEPTH = 5
# Chosen: longer names are cut, so that a pointer stays a line.
_MAX_NAME_CHARS = 80
_OFFICE = "application/vnd.openxmlformats-officedocument"
# Media types by the ending of a file name, which is also what Converse and recordings call a format.
_FORMATS: Mapping[str, str] = {
    **{name: f"image/{name}" for name in ("png", "jpeg", "gif", "webp", "bmp", "tiff", "heic")},
    **{name: f"video/{name}" for name in ("mp4", "webm", "mpeg", "mov")},
    **{name: f"audio/{name}" for name in ("wav", "flac", "ogg", "aac", "opus")},
    **{name: f"text/{name}" for name in ("csv", "html", "xml")},
    "jpg": "image/jpeg",
    "mp3": "audio/mpeg",
    "m4a": "audio/mp4",
    "txt": "text/plain",
    "md": "text/markdown",
    "pdf": "application/pdf",
    "json": "application/json",
    "doc": "application/msword",
    "xls": "application/vnd.ms-excel",
    "docx": f"{_OFFICE}.wordprocessingml.document",
    "xlsx": f"{_OFFICE}.spreadsheetml.sheet",
    "pptx": f"{_OFFICE}.presentationml.presentation",
}
# How bytes of each kind begin, in base64.
_MAGIC = {"JVBERi": "application/pdf", "iVBORw": "image/png", "/9j/": "image/jpeg", "R0lGOD": "image/gif"}


@dataclass(frozen=True, slots=True)
class Payload:
    """What a part has of a file: base64 text, plain text, or only a reference to where it is."""

    base64: str = ""
    text: str = ""
    reference: str = ""

    def decoded(self, max_chars: int | None = None) -> bytes:
        """Return the bytes, or those of the first characters; none of what is only a reference."""
        data = self.base64 if max_chars is None else self.base64[: max_chars // 4 * 4]
        try:
            return binascii.a2b_base64(data.replace("-", "+").replace("_", "/"))
        except ValueError:  # binascii.Error, and characters beyond ASCII
            return b""


@dataclass(frozen=True, slots=True)
class Attachment:
    """What is known of an attachment without showing it.

    Attributes:
        kind: `image`, `document`, `audio`, `video` or `file`.
        name: Its file name or title; empty if it came without one.
        media_type: Its media type; empty if that is not known.
        size_bytes: How large it is; None for what is only referred to.
        pages: The pages of a PDF; None for others.
        digest: The same for the same content, whatever its name.
        place: Where it stands among the parts of its message.

    Example:
        >>> from compact import Message
        >>> from compact.core.messages.attachments import attachments_of
        >>> text = {"type": "document", "title": "notes", "source": {"type": "text", "data": "Ten words."}}
        >>> print(attachments_of(Message("user", [text]))[0])
        notes, 10 bytes
    """

    kind: str
    name: str
    media_type: str
    size_bytes: int | None
    pages: int | None
    digest: str
    place: int

    def __str__(self) -> str:
        return self.describe()

    def describe(self, *, with_name: bool = True) -> str:
        """Return it in a line: name, type, size, pages; without its name for whoever may not read that."""
        name = (self.name or f"unnamed {self.kind}") if with_name else self.kind
        size = "" if self.size_bytes is None else _size(self.size_bytes)
        pages = "" if self.pages is None else quantity(self.pages, "page")
        return ", ".join(piece for piece in (name, self.media_type, size, pages) if piece)


def attachments_of(message: Message) -> tuple[Attachment, ...]:
    """Return the attachments in the content of a message, in their order; read once in its life."""
    return () if isinstance(message.content, str) or not message.content else message.read_once(_read_attachments)


def attached_part(message: Message, attachment: Attachment) -> Part:
    """Return an attachment as it came."""
    return cast(tuple[Part, ...], message.content)[attachment.place]


def text_part(text: str, *, beside: Part) -> Part:
    """Return a text as a part in the form of the part that it stands beside."""
    return {"type": "input_text" if beside.get("type") in ("input_image", "input_file") else "text", "text": text}


def attachment_id(session_id: str, attachment: Attachment) -> str:
    """Return the id by which an attachment comes back: the same for the same content, and of this session only."""
    key = f"{session_id}\0{attachment.digest}".encode("utf-8", "surrogatepass")
    return "art-" + hashlib.sha256(key).hexdigest()[:16]


def text_with_attachments(message: Message) -> str:
    """Return the text of a message, with a line for each attachment: for people, and for search."""
    lines = [f"[attachment: {attachment}]" for attachment in attachments_of(message)]
    return "\n".join(piece for piece in (message.text, *lines) if piece) if lines else message.text


def without_bytes(message: Message) -> Message:
    """Return a message with a line in place of each attachment: for transcripts and pages that people read."""
    known = {attachment.place: attachment for attachment in attachments_of(message)}
    if not known:
        return message
    parts = cast(tuple[Part, ...], message.content)
    content = tuple(
        text_part(f"[attachment: {known[place]}]", beside=part) if place in known else part
        for place, part in enumerate(parts)
    )
    original = message.original
    own = {**original, "content": list(content)} if is_mapping(original) else None
    return replace(message, content=content, original=own)


def read_attachment(part: Part, place: int = 0) -> Attachment | None:
    """Return what a content part attaches; None if it is none."""
    kind = _KINDS.get(str(part.get("type")))
    if kind is None or isinstance(part.get("text"), str):
        return None
    payload = payload_of(part)
    content = payload.base64 or payload.text or payload.reference
    if not content:
        return None
    media_type = _media_type(part, payload)
    kind = _kind_of(media_type) or kind or FILE
    data = payload.decoded() if media_type == "application/pdf" and payload.base64 else b""
    size = len(payload.base64.rstrip("=")) * 3 // 4 if payload.base64 else len(payload.text.encode(errors="replace"))
    return Attachment(
        kind=kind,
        name=_name(part),
        media_type=media_type,
        size_bytes=size or None,
        pages=pdf_pages(data) if data else None,
        digest=hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest(),
        place=place,
    )


def payload_of(part: Part) -> Payload:
    """Return what a part has of its file."""
    if is_mapping(source := part.get("source")) and source.get("type") == "text":
        return Payload(text=str(source.get("data", "")))
    levels = list(_levels(part))
    for fields in levels:
        for key in (*_BASE64, *_ADDRESSES):
            value: object = fields.get(key)
            if isinstance(value, bytes | bytearray):
                return Payload(base64=binascii.b2a_base64(bytes(value), newline=False).decode())
            if isinstance(value, str) and value:
                return _read_payload(value, is_data=key in _BASE64 or key == "image")
    for fields in levels:
        for key in (*_IDS, "text"):
            if isinstance(value := fields.get(key), str) and value:
                return Payload(text=value) if key == "text" else Payload(reference=value)
    return Payload()


def _read_payload(value: str, *, is_data: bool) -> Payload:
    if value.startswith("data:"):
        comma = value.find(",", 0, 256)
        if comma < 0:
            return Payload(reference=value)
        data = value[comma + 1 :]
        return Payload(base64=data) if value[:comma].endswith(";base64") else Payload(text=data)
    is_address = "://" in value[:16] or value.startswith("file:")
    return Payload(base64=value) if is_data and not is_address else Payload(reference=value)


def _read_attachments(message: Message) -> tuple[Attachment, ...]:
    parts = cast(tuple[object, ...], message.content)
    found = (read_attachment(part, place) for place, part in enumerate(parts) if is_mapping(part))
    return tuple(attachment for attachment in found if attachment)


def _levels(part: Part) -> Iterator[Mapping[str, Any]]:
    """Yield a part and the objects nested in it, the outer ones first."""
    level: list[Mapping[str, Any]] = [part]
    for _ in range(_MAX_DEPTH):
        yield from level
        level = [inner for fields in level for inner in fields.values() if is_mapping(inner)]


def _first_text(part: Part, keys: tuple[str, ...]) -> str:
    for fields in _levels(part):
        for key in keys:
            value: object = fields.get(key)
            if isinstance(value, str) and value:
                return value
    return ""


def _name(part: Part) -> str:
    """Return the name on one line; characters that would end a pointer are left out."""
    name = " ".join(_first_text(part, _NAMES).translate({ord("["): "(", ord("]"): ")"}).split())
    return name if len(name) <= _MAX_NAME_CHARS else name[: _MAX_NAME_CHARS - 1] + "…"


def _media_type(part: Part, payload: Payload) -> str:
    named = _first_text(part, _MEDIA_TYPES).lower()
    if "/" in named:
        return named
    if named:
        return _FORMATS.get(named, "")
    address = next((v for f in _levels(part) for v in f.values() if isinstance(v, str) and v.startswith("data:")), "")
    if address:
        return address[5:256].partition(",")[0].partition(";")[0]
    for start, media_type in _MAGIC.items():
        if payload.base64.startswith(start):
            return media_type
    path = _name(part) or payload.reference.partition("?")[0]
    return _FORMATS.get(path.rpartition(".")[2].lower(), "")


def _kind_of(media_type: str) -> str:
    family = media_type.partition("/")[0]
    if family in (IMAGE, AUDIO, VIDEO):
        return family
    return DOCUMENT if family in ("text", "application") and media_type != "application/octet-stream" else ""


def _size(size_bytes: int) -> str:
    if size_bytes < 1000:
        return quantity(size_bytes, "byte")
    unit, name = (1_000_000, "MB") if size_bytes >= 1_000_000 else (1000, "kB")
    number = size_bytes / unit
    return f"{number:.1f} {name}" if number < 10 else f"{number:,.0f} {name}"
