"""Small PDF files, made by hand: with plain objects, with object streams, and edited."""

from __future__ import annotations

import zlib


def plain_pdf(pages: int) -> bytes:
    """A PDF whose objects stand in the file."""
    return _file(_tree(pages) + b"".join(_page(number) for number in range(3, 3 + pages)))


def packed_pdf(pages: int) -> bytes:
    """A PDF as most programs write it today: its objects are packed into a compressed stream."""
    objects = b" ".join([_bare_tree(pages), *([b"<< /Type /Page /Parent 2 0 R >>"] * pages)])
    packed = zlib.compress(objects)
    head = b"9 0 obj\n<< /Type /ObjStm /N %d /First 0 /Filter /FlateDecode /Length %d >>\n" % (pages + 1, len(packed))
    return _file(head + b"stream\r\n" + packed + b"\nendstream\nendobj\n")


def edited_pdf(pages: int) -> bytes:
    """A PDF of which a page was written again at its end, and another one removed."""
    return plain_pdf(pages) + _page(3) + _tree(pages - 1) + b"%%EOF\n"


def _file(objects: bytes) -> bytes:
    return b"%PDF-1.7\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n" + objects + b"%%EOF\n"


def _bare_tree(pages: int) -> bytes:
    return b"<< /Type /Pages /Kids [] /Count %d >>" % pages


def _tree(pages: int) -> bytes:
    return b"2 0 obj\n" + _bare_tree(pages) + b"\nendobj\n"


def _page(number: int) -> bytes:
    return b"%d 0 obj\n<< /Type/Page /Parent 2 0 R /Contents [] >>\nendobj\n" % number
