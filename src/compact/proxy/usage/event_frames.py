"""The binary framing of AWS streams (application/vnd.amazon.eventstream): the data of each event.

A frame is the length of all of it, that of its headers, a checksum of these two, headers, data, and a checksum of all.
Checksums are the client's affair: nothing is done here that a wrong byte could harm.
"""

from __future__ import annotations

import base64
import binascii
import json
import struct
from collections.abc import Iterator

from compact.core.json_data import is_mapping

_LENGTHS = struct.Struct("!II")
_BEFORE_HEADERS, _AFTER_DATA = 12, 4


class FrameError(Exception):
    """The bytes are no frames."""


def take_frames(buffer: bytearray) -> Iterator[bytes]:
    """Yield the data of every frame that is complete, and remove it from the buffer."""
    while len(buffer) >= _LENGTHS.size:
        length, headers_length = _LENGTHS.unpack_from(buffer)
        start, end = _BEFORE_HEADERS + headers_length, length - _AFTER_DATA
        if start > end:
            raise FrameError(f"a frame of {length} bytes with headers of {headers_length}")
        if len(buffer) < length:
            return
        data = bytes(buffer[start:end])
        del buffer[:length]
        yield _model_data(data)


def _model_data(data: bytes) -> bytes:
    """Return the model's own event, which InvokeModel wraps as base64; Converse has its events as they are."""
    if b'"bytes"' not in data:
        return data
    try:
        wrapped = json.loads(data)
        return base64.b64decode(wrapped["bytes"]) if is_mapping(wrapped) and "bytes" in wrapped else data
    except (ValueError, TypeError, binascii.Error):
        return data
