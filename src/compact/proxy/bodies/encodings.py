"""Unpacks request bodies that an agent has packed (`Content-Encoding`), and never more of one than a limit."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeAlias

from compact.extras import install_line

_GZIP, _ZLIB, _RAW = 16 + zlib.MAX_WBITS, zlib.MAX_WBITS, -zlib.MAX_WBITS

# Takes a packed body and a limit; returns what is in it, and no more than one byte above the limit.
_Unpack: TypeAlias = Callable[[bytes, int], bytes]


class UnreadableBody(Exception):
    """A body cannot be unpacked; `reason` is for the response header, `hint` for the log."""

    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.reason, self.hint = reason, hint


def unpack_body(body: bytes, encoding: bytes, max_bytes: int) -> bytes:
    """Return a body without its encodings, which are undone in the order opposite to the one they are named in.

    Raises UnreadableBody if it would be larger than the limit, is not what it says, or needs a package that is missing.
    """
    for name in reversed([word.strip().lower() for word in encoding.decode("latin-1").split(",")]):
        if name in ("", "identity"):
            continue
        unpack = _UNPACKERS.get(name)
        if unpack is None:
            raise UnreadableBody("unknown-encoding")
        try:
            body = unpack(body, max_bytes)
        except UnreadableBody:
            raise
        except Exception as error:  # every package has an error of its own for bytes that it cannot read
            raise UnreadableBody("broken-encoding") from error
        if len(body) > max_bytes:
            raise UnreadableBody("body-too-large")
    return body


def _inflate(body: bytes, max_bytes: int, window_bits: int) -> bytes:
    unpacker = zlib.decompressobj(window_bits)
    plain = unpacker.decompress(body, max_bytes + 1)
    # A body that ends too soon is not for us to judge, or to send on as if it were whole.
    if not unpacker.eof and len(plain) <= max_bytes:
        raise UnreadableBody("broken-encoding")
    return plain


def _gunzip(body: bytes, max_bytes: int) -> bytes:
    return _inflate(body, max_bytes, _GZIP)


def _deflate(body: bytes, max_bytes: int) -> bytes:
    """Unpack `deflate`, which is zlib's format; some clients send it without its header."""
    try:
        return _inflate(body, max_bytes, _ZLIB)
    except zlib.error:
        return _inflate(body, max_bytes, _RAW)


def _unzstd(body: bytes, max_bytes: int) -> bytes:
    with _package("zstandard", "zstd").ZstdDecompressor().stream_reader(body, read_across_frames=True) as reader:
        return _read(reader.read, max_bytes)


def _unbrotli(body: bytes, max_bytes: int) -> bytes:
    unpacker = _package("brotli", "br").Decompressor()
    plain = bytearray(unpacker.process(body, output_buffer_limit=max_bytes + 1))
    while len(plain) <= max_bytes and not unpacker.is_finished():
        more = unpacker.process(b"", output_buffer_limit=max_bytes + 1 - len(plain))
        if not more:
            raise UnreadableBody("broken-encoding")
        plain += more
    return bytes(plain)


def _read(read: Callable[[int], bytes], max_bytes: int) -> bytes:
    plain = bytearray()
    while len(plain) <= max_bytes and (part := read(min(1_000_000, max_bytes + 1 - len(plain)))):
        plain += part
    return bytes(plain)


def _package(name: str, encoding: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError:
        hint = install_line("proxy") if name == "zstandard" else f"pip install {name}"
        raise UnreadableBody(f"{encoding}-needs-{name}", hint) from None


_UNPACKERS: dict[str, _Unpack] = {
    "gzip": _gunzip,
    "x-gzip": _gunzip,
    "deflate": _deflate,
    "zstd": _unzstd,
    "br": _unbrotli,
}
