"""Counting the pages of a PDF: however it is packed, whatever was done to it, in bounded time."""

from __future__ import annotations

import time
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compact.core.messages.pdf_pages import pdf_pages
from core.messages.pdf_files import edited_pdf, packed_pdf, plain_pdf


@pytest.mark.parametrize("pages", [1, 3, 250])
def test_pages_are_counted_however_they_are_packed(pages: int) -> None:
    assert pdf_pages(plain_pdf(pages)) == pages
    assert pdf_pages(packed_pdf(pages)) == pages


def test_packed_pages_are_counted_where_no_tree_says_how_many_there_are() -> None:
    packed = zlib.compress(b"<< /Type /Page >> " * 7)
    head = b"%PDF-1.7\n9 0 obj\n<< /Type /ObjStm /Filter /FlateDecode >>\nstream\n"
    assert pdf_pages(head + packed + b"\nendstream\n") == 7


def test_a_page_that_was_written_again_counts_once() -> None:
    pdf = plain_pdf(4)
    assert pdf_pages(pdf + pdf[pdf.index(b"3 0 obj") :]) == 4


def test_old_pages_are_still_in_an_edited_file() -> None:
    """The root of the page tree is the larger of the two here: no page too few is charged."""
    assert pdf_pages(edited_pdf(4)) == 4


@pytest.mark.parametrize("data", [b"", b"no pdf", b"\x89PNG\r\n\x1a\n", b"%PDF-1.7 without a page"])
def test_what_cannot_be_read_has_no_pages(data: bytes) -> None:
    assert pdf_pages(data) is None


def test_a_stream_that_unpacks_to_too_much_is_cut_short() -> None:
    bomb = zlib.compress(b" " * (200 * 1024 * 1024))
    head = b"%PDF-1.7\n9 0 obj\n<< /Type /ObjStm /Filter /FlateDecode >>\nstream\n"
    started = time.perf_counter()
    assert pdf_pages(head + bomb + b"\nendstream\n" + plain_pdf(2)) == 2
    assert time.perf_counter() - started < 10.0


def test_a_number_of_pages_that_nobody_has_is_not_believed() -> None:
    assert pdf_pages(b"%PDF-1.7\n2 0 obj\n<< /Type /Pages /Count 999999999 >>\nendobj\n") == 100_000
    assert pdf_pages(plain_pdf(2).replace(b"/Count 2", b"/Count 999999999")) == 2


@given(st.binary(max_size=300))
def test_no_file_raises(data: bytes) -> None:
    pages = pdf_pages(b"%PDF-1.7\n" + data + b" /Type /ObjStm stream\n" + data)
    assert pages is None or pages > 0
