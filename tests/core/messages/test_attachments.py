"""What is attached to a message, in every form that dialects and frameworks write it."""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from typing import Any

import pytest

from compact.core.messages.attachment_use import messages_in_use, repeated_attachments
from compact.core.messages.attachments import (
    Attachment,
    attachment_id,
    attachments_of,
    payload_of,
    text_with_attachments,
    without_bytes,
)
from compact.core.messages.message import Message
from core.messages.pdf_files import plain_pdf

PDF = plain_pdf(3)
DATA = base64.b64encode(PDF).decode()
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(16)).decode()
PDF_URL, PNG_URL = f"data:application/pdf;base64,{DATA}", f"data:image/png;base64,{PNG}"
PDFS: dict[str, Any] = {
    "chat": {"type": "file", "file": {"filename": "a.pdf", "file_data": PDF_URL}},
    "responses": {"type": "input_file", "filename": "a.pdf", "file_data": PDF_URL},
    "anthropic": {
        "type": "document",
        "title": "a.pdf",
        "source": {"type": "base64", "media_type": "application/pdf", "data": DATA},
    },
    "gemini": {
        "type": "inlineData",
        "inlineData": {"mimeType": "application/pdf", "data": DATA, "displayName": "a.pdf"},
    },
    "converse": {
        "type": "block",
        "block": {"document": {"format": "pdf", "name": "a.pdf", "source": {"bytes": {"$bytes": DATA}}}},
    },
    "vercel": {"type": "file", "data": DATA, "mediaType": "application/pdf", "filename": "a.pdf"},
    "vercel bytes": {"type": "file", "data": {"$bytes": DATA}, "mediaType": "application/pdf", "filename": "a.pdf"},
    "langchain v1": {"type": "file", "base64": DATA, "mime_type": "application/pdf", "extras": {"filename": "a.pdf"}},
    "langchain v0": {
        "type": "file",
        "source_type": "base64",
        "data": DATA,
        "mime_type": "application/pdf",
        "filename": "a.pdf",
    },
    "pydantic ai": {
        "type": "binary",
        "kind": "binary",
        "data": DATA,
        "media_type": "application/pdf",
        "vendor_metadata": {"filename": "a.pdf"},
    },
    "agent framework": {
        "type": "content",
        "value": {"type": "data", "uri": PDF_URL, "media_type": "application/pdf", "name": "a.pdf"},
    },
    "bytes": {"type": "file", "data": PDF, "mediaType": "application/pdf", "filename": "a.pdf"},
}
IMAGES: dict[str, Any] = {
    "chat": {"type": "image_url", "image_url": {"url": PNG_URL, "detail": "low"}},
    "responses": {"type": "input_image", "image_url": PNG_URL},
    "anthropic": {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
    "gemini": {"type": "image", "inlineData": {"mimeType": "image/png", "data": PNG}},
    "converse": {"type": "image", "source": {"data": PNG}, "native": {"format": "png"}},
    "vercel": {"type": "image", "image": PNG, "mediaType": "image/png"},
    "langchain v1": {"type": "image", "base64": PNG, "mime_type": "image/png"},
}
REFERENCES: dict[str, tuple[Any, str, str]] = {
    "chat id": ({"type": "file", "file": {"file_id": "file-1"}}, "file", ""),
    "chat address": ({"type": "image_url", "image_url": {"url": "https://a.org/x.png"}}, "image", "image/png"),
    "responses id": ({"type": "input_image", "file_id": "file-1"}, "image", ""),
    "responses address": ({"type": "input_file", "file_url": "https://a.org/x.pdf"}, "document", "application/pdf"),
    "anthropic id": ({"type": "document", "source": {"type": "file", "file_id": "f1"}}, "document", ""),
    "gemini": (
        {"type": "fileData", "fileData": {"mimeType": "video/mp4", "fileUri": "gs://b/x.mp4"}},
        "video",
        "video/mp4",
    ),
    "converse": (
        {"type": "block", "block": {"video": {"format": "mp4", "source": {"s3Location": {"uri": "s3://b/x"}}}}},
        "video",
        "video/mp4",
    ),
    "second id": ({"type": "file", "file_id": "", "fileId": "file-1"}, "file", ""),
    "vercel address": ({"type": "image", "image": "https://a.org/x.png"}, "image", "image/png"),
    "vercel file": ({"type": "file", "data": "file:/tmp/x.pdf"}, "document", "application/pdf"),
    "short address": ({"type": "image", "url": "/uploads/x.png"}, "image", "image/png"),
    "langchain v1 id": ({"type": "file", "file_id": "file-1", "mime_type": "text/csv"}, "document", "text/csv"),
    "langchain v1 address": ({"type": "image", "url": "https://a.org/x.webp?y=1"}, "image", "image/webp"),
}


def attached(part: Any) -> Attachment:
    (found,) = attachments_of(Message("user", ({"type": "text", "text": "Look:"}, part)))
    assert found.place == 1
    return found


@pytest.mark.parametrize("form", PDFS)
def test_a_document_is_the_same_in_every_form(form: str) -> None:
    found = attached(PDFS[form])
    assert str(found) == f"a.pdf, application/pdf, {len(PDF)} bytes, 3 pages"
    assert (found.kind, found.digest) == ("document", attached(PDFS["chat"]).digest)
    assert payload_of(PDFS[form]).decoded() == PDF


@pytest.mark.parametrize("form", IMAGES)
def test_an_image_is_the_same_in_every_form(form: str) -> None:
    found = attached(IMAGES[form])
    assert str(found) == "unnamed image, image/png, 24 bytes"
    assert found.digest == attached(IMAGES["chat"]).digest


@pytest.mark.parametrize("form", REFERENCES)
def test_what_is_only_referred_to_has_no_size(form: str) -> None:
    part, kind, media_type = REFERENCES[form]
    found = attached(part)
    assert (found.kind, found.media_type, found.size_bytes, found.pages) == (kind, media_type, None, None)


@pytest.mark.parametrize(
    "part",
    [
        {"type": "text", "text": "words"},
        {"type": "image"},
        {"type": "tool_result", "content": "x"},
        {"type": "file", "file": {}},
        {"type": "text-plain", "text": "words"},
        {"type": "document", "text": "words"},
        {"type": "unknown", "data": "d29yZHM="},
        {"type": "block", "block": {"cachePoint": {"type": "default"}}},
    ],
)
def test_other_parts_attach_nothing(part: Any) -> None:
    assert attachments_of(Message("user", (part,))) == ()


@pytest.mark.parametrize("content", [None, "", "words", ()])
def test_a_message_without_parts_attaches_nothing(content: Any) -> None:
    assert attachments_of(Message("user", content)) == ()


def test_a_name_stays_on_its_line() -> None:
    part = {"type": "input_file", "filename": "x]\n[recall m1" + "y" * 200, "file_data": PDF_URL}
    assert attached(part).name.startswith("x) (recall m1yy")
    assert len(attached(part).name) == 80
    assert attached({**part, "filename": "y" * 80}).name == "y" * 80


@pytest.mark.parametrize("other", [{"filename": ""}, {"filename": 7}])
def test_the_first_name_that_is_a_text_is_its_name(other: dict[str, Any]) -> None:
    assert attached({"type": "file", "title": "a.pdf", "data": DATA, **other}).name == "a.pdf"


@pytest.mark.parametrize(
    ("size_bytes", "told"),
    [
        (999, "999 bytes"),
        (1_000, "1.0 kB"),
        (9_940, "9.9 kB"),
        (10_000, "10 kB"),
        (10_900, "11 kB"),
        (999_000, "999 kB"),
        (1_000_000, "1.0 MB"),
        (10_000_000, "10 MB"),
    ],
)
def test_sizes_are_told_in_thousands_and_millions(size_bytes: int, told: str) -> None:
    found = replace(attached(IMAGES["chat"]), size_bytes=size_bytes)
    assert str(found) == f"unnamed image, image/png, {told}"


def test_only_what_is_said_to_be_a_pdf_has_pages() -> None:
    assert attached({**PDFS["vercel"], "mediaType": "text/plain"}).pages is None


def test_the_beginning_of_a_file_is_decoded_alone() -> None:
    payload = payload_of(PDFS["vercel"])
    assert [payload.decoded(chars) for chars in (0, 3, 4, 10)] == [b"", b"", PDF[:3], PDF[:6]]


def test_people_read_a_line_and_no_bytes() -> None:
    wire = {"role": "user", "content": [{"type": "text", "text": "Look:"}, PDFS["chat"]]}
    message = Message("user", wire["content"], original=wire)
    bare = without_bytes(message)
    assert text_with_attachments(message) == bare.text
    assert bare.text.endswith("[attachment: a.pdf, application/pdf, 293 bytes, 3 pages]")
    assert DATA not in repr((bare, bare.original))
    assert [part["type"] for part in bare.content] == ["text", "text"]
    assert [part["type"] for part in without_bytes(Message("user", (PDFS["responses"],))).content] == ["input_text"]
    assert DATA in repr(message.original), "the message itself is as it was"


def test_the_id_is_of_the_content_and_of_the_session() -> None:
    one, other = attached(PDFS["chat"]), attached(PDFS["anthropic"])
    assert attachment_id("s", one) == attachment_id("s", other) != attachment_id("t", one)
    assert re.fullmatch(r"art-[0-9a-f]{16}", attachment_id("s", one))


# -- in use ---------------------------------------------------------------------------------------------------------


def sends(number: int, text: str, *parts: Any) -> Message:
    return Message("user", ({"type": "text", "text": text}, *parts), id=f"m{number}")


def named(name: str, data: str = DATA) -> dict[str, Any]:
    return {"type": "file", "file": {"filename": name, "file_data": f"data:application/pdf;base64,{data}"}}


def chatter(first: int, count: int, text: str = "go on") -> list[Message]:
    return [Message("user", text, id=f"m{number}") for number in range(first, first + count)]


@pytest.mark.parametrize(("later", "in_use"), [(2, True), (3, False)])
def test_the_newest_turns_are_in_use(later: int, in_use: bool) -> None:
    messages = [sends(1, "Look.", named("a.pdf")), *chatter(2, later)]
    assert messages_in_use(messages, recent_turns=3) == (("m1",) if in_use else ())


@pytest.mark.parametrize(
    ("name", "said", "in_use"),
    [
        ("report.pdf", "What does Report.PDF say?", True),
        ("report.pdf", "Write a report.", False),
        ("q3_report.pdf", "What is in q3_report?", True),
        ("q3_a.pdf", "What is in q3_a?", True),
        ("q_3.pdf", "What is in q_3?", False),
        ("a.md", "What is in a.md?", True),
        ("a.b", "a.b", False),
    ],
)
def test_what_the_newest_turns_name_is_in_use(name: str, said: str, in_use: bool) -> None:
    messages = [sends(1, "Look.", named(name)), *chatter(2, 8), *chatter(10, 1, said)]
    assert messages_in_use(messages, recent_turns=3) == (("m1",) if in_use else ())
    assert messages_in_use([*messages, *chatter(11, 2)], recent_turns=3) == (("m1",) if in_use else ())
    assert messages_in_use([*messages, *chatter(11, 3)], recent_turns=3) == ()


@pytest.mark.parametrize(
    ("source", "text", "in_use"),
    [
        ("m1", "answer from this document only", ("m1",)),
        ("m3", "use only the attached file", ("m2",)),
        ("m3", "trust the document, not the web", ("m1",)),
        ("m3", "Describe only what is in the picture", ("m2",)),
        ("m3", "only ever quote a.pdf", ("m1",)),
        ("m3", "never use semicolons", ()),
        ("gone", "answer from this document only", ()),
    ],
)
def test_what_an_instruction_is_about_is_in_use(source: str, text: str, in_use: tuple[str, ...]) -> None:
    messages = [sends(1, "One.", named("a.pdf")), sends(2, "Two.", IMAGES["chat"]), *chatter(3, 6)]
    assert messages_in_use(messages, recent_turns=2, instructions=[(source, text)]) == in_use


def test_an_instruction_may_come_before_what_it_is_about() -> None:
    messages = [*chatter(1, 1), sends(2, "Here.", named("a.pdf")), *chatter(3, 6)]
    asked = [("m1", "answer only from the document that I send next")]
    assert messages_in_use(messages, recent_turns=2, instructions=asked) == ("m2",)


def test_an_instruction_is_about_what_came_last_with_it_or_before_it_else_what_came_next() -> None:
    other = base64.b64encode(plain_pdf(5)).decode()
    messages = [*chatter(1, 1), sends(2, "2", named("a.pdf")), sends(3, "3", named("b.pdf", other)), *chatter(4, 6)]
    for said_in, meant in (("m1", "m2"), ("m2", "m2"), ("m3", "m3"), ("m4", "m3")):
        asked = [(said_in, "answer from this document only")]
        assert messages_in_use(messages, recent_turns=2, instructions=asked) == (meant,)


def test_only_what_users_sent_is_in_use_and_only_what_has_attachments_was_sent_again() -> None:
    looked = [Message("assistant", "I look.", id="m2"), Message("tool", (IMAGES["chat"],), id="m3")]
    messages = [sends(1, "Look.", IMAGES["chat"]), *looked, *chatter(4, 1)]
    assert messages_in_use(messages, recent_turns=3) == ("m1",)
    assert repeated_attachments(messages) == frozenset()


def test_what_was_sent_again_is_in_use_where_it_was_sent_last() -> None:
    other = base64.b64encode(plain_pdf(5)).decode()
    messages = [sends(1, "1", named("a.pdf")), sends(2, "2", named("b.pdf", other)), sends(3, "3", named("c.pdf"))]
    assert repeated_attachments(messages) == {"m1"}
    assert messages_in_use(messages, recent_turns=3) == ("m2", "m3")


def test_an_instruction_keeps_what_was_sent_again_where_it_was_sent_last() -> None:
    """Some frameworks repeat the images of a task behind each of its steps."""
    messages = [sends(1, "1", named("a.pdf")), sends(2, "2", named("a.pdf")), *chatter(3, 8)]
    asked = [("m1", "answer from this document only")]
    assert messages_in_use(messages, recent_turns=2, instructions=asked) == ("m2",)
