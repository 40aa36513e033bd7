"""Tokens of an image part, from the size in its header.

Only a prefix of the base64 is decoded. A size that cannot be read (a web address, a file id, a strange format)
costs as much as the rule ever charges.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable, Mapping
from math import ceil
from typing import Any, Literal, TypeAlias

from compact.core.json_data import is_mapping
from compact.core.messages.attachments import payload_of

# tiles: OpenAI. area: Anthropic. gemini: up to version 2.5; gemini_3: later. largest: whichever of the first two is
# more, for providers we do not know.
ImageRule: TypeAlias = Literal["tiles", "area", "gemini", "gemini_3", "largest"]
Size: TypeAlias = tuple[int, int]

IMAGE_TYPES = frozenset({"image_url", "input_image", "image", "computer_screenshot"})
LOW_DETAIL_TOKENS = 85
TILE_TOKENS = 170
MAX_TILES = 8
MAX_AREA_TOKENS = 1600
_PIXELS_PER_TOKEN = 750
_LONGEST_AREA_EDGE = 1568
# Gemini (2025): an image of up to 384 x 384 is one tile, a larger one is cut into tiles of 768 at the most.
GEMINI_TILE_TOKENS = 258
GEMINI_3_TOKENS = 1120
_GEMINI_SMALL, _GEMINI_TILE, _GEMINI_UNKNOWN_TILES = 384, 768, 4
# A JPEG can carry a preview and colour tables before its size; most sizes are in the first kilobyte.
_PREFIX_CHARS = (1024, 128 * 1024, 2 * 1024 * 1024)


def image_tokens(part: Mapping[str, Any], rule: ImageRule = "largest") -> int:
    """Return the tokens of an image: a part in any dialect's form, or LangChain's."""
    size = image_size(payload_of(part).base64)
    match rule:
        case "tiles":
            return _tile_tokens(size, _detail(part))
        case "area":
            return _area_tokens(size)
        case "gemini":
            return _gemini_tokens(size)
        case "gemini_3":
            return GEMINI_3_TOKENS
        case "largest":
            return max(_tile_tokens(size, _detail(part)), _area_tokens(size))


def image_size(payload: str) -> Size | None:
    """Return width and height of a data URL or bare base64 text; None if they cannot be read."""
    if not payload:
        return None
    start = 0
    if payload.startswith("data:"):
        start = payload.find(";base64,", 0, 256) + len(";base64,")
        if start < len(";base64,"):
            return None
    elif payload.startswith(("http://", "https://", "file:", "gs://", "s3://")):
        return None
    for chars in _PREFIX_CHARS:
        size = _header_size(_decode(payload[start : start + chars]))
        if size or start + chars >= len(payload):
            return size
    return None


def _detail(part: Mapping[str, Any]) -> str:
    """Return the detail that is asked for: beside the address of an image, or in the part."""
    holder: object = part.get("image_url")
    detail = (holder.get("detail") if is_mapping(holder) else None) or part.get("detail") or "auto"
    return detail if isinstance(detail, str) else "auto"


def _tile_tokens(size: Size | None, detail: str) -> int:
    """Count as OpenAI does: fit into 2048 x 2048, shrink the short side to 768, then count tiles of 512."""
    if detail == "low":
        return LOW_DETAIL_TOKENS
    if size is None:
        return LOW_DETAIL_TOKENS + TILE_TOKENS * MAX_TILES
    width, height = size
    scale = min(1.0, 2048 / max(width, height))
    scale = min(scale, 768 / min(width, height))
    tiles = ceil(round(width * scale, 3) / 512) * ceil(round(height * scale, 3) / 512)
    return LOW_DETAIL_TOKENS + TILE_TOKENS * min(tiles, MAX_TILES)


def _area_tokens(size: Size | None) -> int:
    """Count as Anthropic does: shrink the long edge to 1568, then a token for every 750 pixels."""
    if size is None:
        return MAX_AREA_TOKENS
    width, height = size
    scale = min(1.0, _LONGEST_AREA_EDGE / max(width, height))
    return min(MAX_AREA_TOKENS, max(1, ceil(width * scale * height * scale / _PIXELS_PER_TOKEN)))


def _gemini_tokens(size: Size | None) -> int:
    """Count as Gemini does: a small image is one tile; others are cut into squares of their shorter side."""
    if size is None:
        return GEMINI_TILE_TOKENS * _GEMINI_UNKNOWN_TILES
    width, height = size
    if max(width, height) <= _GEMINI_SMALL:
        return GEMINI_TILE_TOKENS
    edge = min(_GEMINI_TILE, max(256, int(min(width, height) / 1.5)))
    return GEMINI_TILE_TOKENS * ceil(width / edge) * ceil(height / edge)


def _decode(prefix: str) -> bytes:
    compact = "".join(prefix.split()).replace("-", "+").replace("_", "/")
    try:
        return binascii.a2b_base64(compact[: len(compact) // 4 * 4])
    except ValueError:  # binascii.Error, and characters beyond ASCII
        return b""


def _header_size(head: bytes) -> Size | None:
    for signature, read in _READERS:
        if head.startswith(signature):
            size = read(head)
            return size if size and min(size) > 0 else None
    return None


def _png_size(head: bytes) -> Size | None:
    return (int.from_bytes(head[16:20]), int.from_bytes(head[20:24])) if len(head) >= 24 else None


def _gif_size(head: bytes) -> Size | None:
    return (int.from_bytes(head[6:8], "little"), int.from_bytes(head[8:10], "little")) if len(head) >= 10 else None


def _jpeg_size(head: bytes) -> Size | None:
    """Walk the segments up to the frame header, which holds the size."""
    at = 2
    while at + 9 <= len(head):
        if head[at] != 0xFF:
            return None
        marker = head[at + 1]
        if marker == 0xFF:
            at += 1
        elif 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            return int.from_bytes(head[at + 7 : at + 9]), int.from_bytes(head[at + 5 : at + 7])
        elif marker in (0x01, *range(0xD0, 0xD9)):
            at += 2
        else:
            at += 2 + int.from_bytes(head[at + 2 : at + 4])
    return None


def _webp_size(head: bytes) -> Size | None:
    if len(head) < 30 or head[8:12] != b"WEBP":
        return None
    match head[12:16]:
        case b"VP8X":
            return 1 + int.from_bytes(head[24:27], "little"), 1 + int.from_bytes(head[27:30], "little")
        case b"VP8L":
            packed = int.from_bytes(head[21:25], "little")
            return 1 + (packed & 0x3FFF), 1 + (packed >> 14 & 0x3FFF)
        case b"VP8 ":
            return int.from_bytes(head[26:28], "little") & 0x3FFF, int.from_bytes(head[28:30], "little") & 0x3FFF
        case _:
            return None


_READERS: tuple[tuple[bytes, Callable[[bytes], Size | None]], ...] = (
    (b"\x89PNG\r\n\x1a\n", _png_size),
    (b"\xff\xd8", _jpeg_size),
    (b"GIF8", _gif_size),
    (b"RIFF", _webp_size),
)
