"""Tokens of an attachment that is no image: documents by their pages, recordings by their seconds.

What a file costs is a rule of its provider, not of its bytes. A file that is only referred to (a web address, the id of
an upload) has a size that nobody here knows: it is charged a guess, which the provider's usage report corrects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil

from compact.core.messages.attachments import AUDIO, IMAGE, VIDEO, Attachment, Payload
from compact.core.messages.message import Part
from compact.tokens.images import ImageRule, image_tokens

# A page of a PDF, text and picture together. OpenAI (2025): the text and an image of each page; four tiles and about
# 800 tokens of text. Anthropic (2025): 1,500 to 3,000 tokens by page; AWS gives 7,000 for three pages (2025).
# Gemini (2025): 258 up to version 2.5, 560 from version 3 on.
PAGE_TOKENS: Mapping[ImageRule, int] = {"tiles": 1600, "area": 2400, "gemini": 258, "gemini_3": 560, "largest": 2400}
# Gemini (2025): 32 tokens for a second of sound, 263 for a second of video; OpenAI (2025): 10 for a second of sound.
AUDIO_TOKENS: Mapping[ImageRule, int] = {"tiles": 10}
MAX_AUDIO_TOKENS = 32
VIDEO_TOKENS = 263
# Chosen: the guesses for what is only referred to, and for what cannot be read.
UNKNOWN_PAGES = 5
UNKNOWN_SECONDS = 60
# Chosen: a page of a PDF that cannot be read; a page of an office file, which is packed text; its tokens.
_BYTES_BY_PAGE = 50_000
_BYTES_BY_OFFICE_PAGE = 20_000
_TEXT_PAGE_TOKENS = 800
# A usual recording: 128 kbit of sound, 1 Mbit of video in a second.
_AUDIO_BYTES_BY_SECOND = 16_000
_VIDEO_BYTES_BY_SECOND = 125_000
# Chosen: longer texts are counted by their beginning.
_COUNTED_CHARS = 1_000_000


def attachment_tokens(
    part: Part, attachment: Attachment, payload: Payload, count_text: Callable[[str], int], rule: ImageRule
) -> int:
    """Return what an attachment costs in a prompt, its name included."""
    if attachment.kind == IMAGE:
        return image_tokens(part, rule)
    name_tokens = count_text(attachment.name) if attachment.name else 0
    if attachment.kind == AUDIO:
        per_second = AUDIO_TOKENS.get(rule, MAX_AUDIO_TOKENS)
        return name_tokens + ceil(_seconds(attachment, payload, _AUDIO_BYTES_BY_SECOND) * per_second)
    if attachment.kind == VIDEO:
        return name_tokens + ceil(_seconds(attachment, payload, _VIDEO_BYTES_BY_SECOND) * VIDEO_TOKENS)
    return name_tokens + _document_tokens(attachment, payload, count_text, PAGE_TOKENS[rule])


def _document_tokens(
    attachment: Attachment, payload: Payload, count_text: Callable[[str], int], page_tokens: int
) -> int:
    size = attachment.size_bytes
    if attachment.pages is not None:
        return attachment.pages * page_tokens
    if size is None:
        return UNKNOWN_PAGES * page_tokens
    if payload.text or attachment.media_type.startswith("text/") or attachment.media_type == "application/json":
        chars = _COUNTED_CHARS * 4 // 3
        text = payload.text[:_COUNTED_CHARS] or payload.decoded(chars).decode("utf-8", "replace")
        return ceil(count_text(text) * max(1.0, size / max(1, len(text.encode(errors="replace")))))
    if attachment.media_type == "application/pdf":
        return ceil(size / _BYTES_BY_PAGE) * page_tokens
    return ceil(size / _BYTES_BY_OFFICE_PAGE) * _TEXT_PAGE_TOKENS


def _seconds(attachment: Attachment, payload: Payload, bytes_by_second: int) -> float:
    """Return how long a recording is: by the header of a WAV, by its size, or by a guess."""
    if attachment.size_bytes is None:
        return UNKNOWN_SECONDS
    head = payload.decoded(64)
    if head[:4] == b"RIFF" and head[8:12] == b"WAVE":
        bytes_by_second = int.from_bytes(head[28:32], "little") or bytes_by_second
    return attachment.size_bytes / bytes_by_second
