"""Image parts: size from the header, tokens from the provider's rule."""

from __future__ import annotations

import base64
import struct
import time
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compact.tokens.images import MAX_AREA_TOKENS, ImageRule, image_size, image_tokens


def png(width: int, height: int) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunk = struct.pack(">I", 13) + b"IHDR" + header + struct.pack(">I", zlib.crc32(b"IHDR" + header))
    return b"\x89PNG\r\n\x1a\n" + chunk + b"\0" * 40


def jpeg(width: int, height: int, *, before: int = 20) -> bytes:
    """`before` bytes of application data stand between the start and the frame header."""
    segments = b""
    while before > 0:
        size = min(before, 65_000)
        segments += b"\xff\xe1" + struct.pack(">H", size + 2) + b"x" * size
        before -= size
    frame = b"\xff\xc2" + struct.pack(">HBHHB", 17, 8, height, width, 3) + b"\0" * 12
    return b"\xff\xd8" + segments + b"\xff\xdb\x00\x04ab" + b"\xff" + frame + b"\0" * 40


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\0" * 40


def webp(width: int, height: int, kind: bytes) -> bytes:
    body = {
        b"VP8 ": b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", width, height),
        b"VP8L": b"\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14),
        b"VP8X": b"\0\0\0\0" + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little"),
    }[kind]
    return b"RIFF\0\0\0\0WEBP" + kind + b"\0\0\0\0" + body + b"\0" * 40


def data_url(raw: bytes, mime: str = "image/png") -> str:
    return f"data:{mime};base64,{base64.b64encode(raw).decode()}"


@pytest.mark.parametrize(
    "raw",
    [
        png(800, 600),
        jpeg(800, 600),
        jpeg(800, 600, before=5_000),
        jpeg(800, 600, before=300_000),
        gif(800, 600),
        *(webp(800, 600, kind) for kind in (b"VP8 ", b"VP8L", b"VP8X")),
    ],
    ids=["png", "jpeg", "jpeg-exif", "jpeg-large-preview", "gif", "webp-lossy", "webp-lossless", "webp-extended"],
)
def test_size_is_read_from_the_header(raw: bytes) -> None:
    assert image_size(data_url(raw)) == (800, 600)
    assert image_size(base64.b64encode(raw).decode()) == (800, 600)
    assert image_size("data:image/x;base64," + base64.encodebytes(raw).decode()) == (800, 600)


def test_only_a_prefix_is_decoded() -> None:
    url = data_url(png(640, 480)).rstrip("=") + "A" * 40_000_000
    started = time.thread_time()
    assert image_size(url) == (640, 480)
    assert time.thread_time() - started < 1.0


@pytest.mark.parametrize(
    "payload",
    [
        "https://example.com/cat.png",
        "data:image/svg+xml,%3Csvg/%3E",
        "data:image/png;base64,",
        "data:image/png;base64,%%%%",
        "data:image/png;base64,é中",
        data_url(png(0, 10)),
        data_url(b"BM" + b"\0" * 60),
        data_url(jpeg(8, 8)[:12]),
        data_url(b"\xff\xd8" + b"\0" * 60),
        data_url(b"RIFF\0\0\0\0WAVE" + b"\0" * 60),
        data_url(b"RIFF\0\0\0\0WEBPVP9 " + b"\0" * 60),
        data_url(b"GIF8"),
    ],
)
def test_an_unreadable_size_is_unknown(payload: str) -> None:
    assert image_size(payload) is None


@given(st.text(max_size=60) | st.binary(max_size=80).map(data_url))
def test_no_payload_raises(payload: str) -> None:
    size = image_size(payload)
    assert size is None or min(size) > 0


@pytest.mark.parametrize(
    ("width", "height", "detail", "tokens"),
    [
        (1024, 1024, "high", 765),
        (2048, 4096, "high", 1105),
        (4096, 8192, "low", 85),
        (512, 512, "auto", 255),
        (1, 1, "high", 255),
        (20_000, 10, "high", 85 + 4 * 170),
    ],
)
def test_tiles_as_openai_publishes_them(width: int, height: int, detail: str, tokens: int) -> None:
    part = {"type": "image_url", "image_url": {"url": data_url(png(width, height)), "detail": detail}}
    assert image_tokens(part, "tiles") == tokens


@pytest.mark.parametrize(("width", "height", "tokens"), [(200, 200, 54), (1000, 1000, 1334), (8000, 8000, 1600)])
def test_area_as_anthropic_publishes_it(width: int, height: int, tokens: int) -> None:
    source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(png(width, height)).decode()}
    assert image_tokens({"type": "image", "source": source}, "area") == tokens


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": data_url(png(1024, 1024))}},
        {"type": "image_url", "image_url": data_url(png(1024, 1024))},
        {"type": "input_image", "image_url": data_url(png(1024, 1024)), "detail": "high"},
        {"type": "image", "source": {"type": "base64", "data": base64.b64encode(png(1024, 1024)).decode()}},
        {"type": "image", "data": base64.b64encode(png(1024, 1024)).decode(), "mimeType": "image/png"},
    ],
)
def test_every_wire_form_is_understood(part: dict[str, Any]) -> None:
    assert image_tokens(part, "tiles") == 765


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": "https://example.com/cat.png"}},
        {"type": "input_image", "file_id": "file_1"},
        {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
        {"type": "image", "source": {"type": "url", "url": "https://example.com/cat.png"}},
        {"type": "image_url", "image_url": 7},
        {"type": "image"},
    ],
)
@pytest.mark.parametrize(("rule", "most"), [("tiles", 1445), ("area", MAX_AREA_TOKENS), ("largest", MAX_AREA_TOKENS)])
def test_unknown_size_costs_the_upper_bound(part: dict[str, Any], rule: ImageRule, most: int) -> None:
    assert image_tokens(part, rule) == most


def test_low_detail_needs_no_size() -> None:
    part = {"type": "input_image", "image_url": "https://example.com/cat.png", "detail": "low"}
    assert image_tokens(part, "tiles") == 85


@given(st.integers(1, 10_000), st.integers(1, 10_000))
def test_no_size_costs_more_than_the_upper_bound(width: int, height: int) -> None:
    part = {"type": "image_url", "image_url": {"url": data_url(png(width, height))}}
    assert 255 <= image_tokens(part, "tiles") <= 1445
    assert 1 <= image_tokens(part, "area") <= MAX_AREA_TOKENS
