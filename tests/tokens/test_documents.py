"""What documents and recordings cost: the rules of providers, in a table."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from compact.core.messages.message import Message
from compact.tokens import get_tokenizer
from compact.tokens.documents import PAGE_TOKENS, UNKNOWN_PAGES, UNKNOWN_SECONDS
from compact.tokens.framing import message_tokens
from compact.tokens.images import ImageRule
from core.messages.pdf_files import packed_pdf, plain_pdf
from core.messages.test_attachments import IMAGES, PDFS

RULES: tuple[ImageRule, ...] = ("tiles", "area", "gemini", "gemini_3", "largest")


def cost(part: Any, rule: ImageRule = "largest") -> int:
    bare = message_tokens(Message("user", ()), len)
    return message_tokens(Message("user", (part,)), len, image_rule=rule) - bare


def file_of(data: bytes, media_type: str, name: str = "") -> dict[str, Any]:
    url = f"data:{media_type};base64,{base64.b64encode(data).decode()}"
    return {"type": "file", "file": {"filename": name, "file_data": url}}


def wav(seconds: int, bytes_by_second: int = 8_000) -> bytes:
    head = b"RIFF" + bytes(4) + b"WAVEfmt " + bytes(12) + bytes_by_second.to_bytes(4, "little") + bytes(12)
    return head + bytes(seconds * bytes_by_second - len(head))


@pytest.mark.parametrize(
    ("rule", "page"), [("tiles", 1600), ("area", 2400), ("gemini", 258), ("gemini_3", 560), ("largest", 2400)]
)
@pytest.mark.parametrize("make", [plain_pdf, packed_pdf])
def test_a_pdf_costs_its_pages(make: Any, rule: ImageRule, page: int) -> None:
    assert cost(file_of(make(14), "application/pdf"), rule) == 14 * page


@pytest.mark.parametrize("form", PDFS)
def test_a_document_costs_the_same_in_every_form(form: str) -> None:
    assert cost(PDFS[form]) == 3 * PAGE_TOKENS["largest"] + len("a.pdf")


@pytest.mark.parametrize("form", [form for form in IMAGES if form != "chat"])
def test_an_image_costs_the_same_in_every_form(form: str) -> None:
    assert cost(IMAGES[form]) == cost(IMAGES["responses"])


@pytest.mark.parametrize(("rule", "second"), [("tiles", 10), ("area", 32), ("gemini", 32)])
def test_a_recording_costs_its_seconds(rule: ImageRule, second: int) -> None:
    part = {"type": "input_audio", "input_audio": {"data": base64.b64encode(wav(20)).decode(), "format": "wav"}}
    assert cost(part, rule) == 20 * second
    blob = {"mimeType": "audio/mpeg", "data": base64.b64encode(bytes(160_000)).decode()}
    assert cost({"type": "inlineData", "inlineData": blob}, rule) == 10 * second


def test_a_video_costs_its_seconds_by_its_size() -> None:
    assert cost(file_of(bytes(1_250_000), "video/mp4")) == 10 * 263


@pytest.mark.parametrize("rule", RULES)
def test_what_is_only_referred_to_is_a_guess(rule: ImageRule) -> None:
    assert cost({"type": "input_file", "file_id": "file-1"}, rule) == UNKNOWN_PAGES * PAGE_TOKENS[rule]
    video = {"type": "fileData", "fileData": {"mimeType": "video/mp4", "fileUri": "gs://b/x"}}
    assert cost(video, rule) == UNKNOWN_SECONDS * 263


def test_text_costs_its_text_and_a_packed_file_its_size() -> None:
    assert cost(file_of(b"some words " * 100, "text/plain")) == 1_100
    assert cost(file_of(b"some words " * 200_000, "text/plain")) == pytest.approx(2_200_000, rel=0.01)
    assert cost(file_of(bytes(90_000), "application/vnd.ms-excel", "b.xls")) == 5 * 800 + 5
    assert cost(file_of(b"%PDF-1.7 " + bytes(90_000), "application/pdf")) == 2 * PAGE_TOKENS["largest"]


@pytest.mark.parametrize(
    ("model", "page"),
    [("claude-sonnet-4-5", 2400), ("gemini-2.5-pro", 258), ("gemini-3-pro-preview", 560), ("gpt-4o", 1600)],
)
def test_the_rule_is_the_models(model: str, page: int) -> None:
    counter = get_tokenizer(model)
    bare = counter.count_message(Message("user", ()))
    assert counter.count_message(Message("user", (file_of(plain_pdf(10), "application/pdf"),))) - bare == 10 * page
