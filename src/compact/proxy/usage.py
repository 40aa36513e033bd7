"""Reads the usage that a provider reports from a response as it passes through; the response is never changed."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any, cast

# Chosen: no answer of a model is that long; one of which more would have to be kept is not read.
_MOST_BYTES = 8_000_000
_GZIP = 16 + zlib.MAX_WBITS  # the value by which zlib reads gzip


class UsageReader:
    """Reads the bytes of one response as they come; `usage` is what was reported in them so far."""

    def __init__(self, headers: Mapping[bytes, bytes]) -> None:
        encoding = headers.get(b"content-encoding", b"").strip().lower()
        kind = headers.get(b"content-type", b"").split(b";")[0].strip().lower()
        self.usage: Mapping[str, Any] | None = None
        self._unpack = zlib.decompressobj(_GZIP) if encoding in (b"gzip", b"x-gzip") else None
        self._is_stream = kind == b"text/event-stream"
        self._reads = encoding in (b"", b"identity", b"gzip", b"x-gzip") and (
            self._is_stream or kind.endswith((b"/json", b"+json"))
        )
        self._kept = bytearray()

    def feed(self, data: bytes) -> None:
        """Read the next bytes."""
        if not self._reads:
            return
        try:
            plain = self._unpack.decompress(data, _MOST_BYTES + 1) if self._unpack else data
        except zlib.error:
            self._stop()
            return
        if self._unpack and self._unpack.unconsumed_tail:
            self._stop()
            return
        self._kept += plain
        if self._is_stream:
            self._read_lines()
        if len(self._kept) > _MOST_BYTES:
            self._stop()

    def end(self) -> Mapping[str, Any] | None:
        """Read the rest at the end of the response, and return what was reported."""
        if self._reads:
            self._read(bytes(self._kept).removeprefix(b"data:"))
        self._stop()
        return self.usage

    def _read_lines(self) -> None:
        if b"\n" not in self._kept:
            return
        *lines, rest = bytes(self._kept).split(b"\n")
        self._kept = bytearray(rest)
        for line in lines:
            if line.startswith(b"data:"):
                self._read(line.removeprefix(b"data:"))

    def _read(self, text: bytes) -> None:
        if b'"usage"' not in text:
            return
        try:
            found = _usage_in(json.loads(text))
        except (ValueError, RecursionError):
            return
        # The first report is about the prompt; later ones may include what tools of the provider have read since.
        self.usage = {**found, **(self.usage or {})} if found else self.usage

    def _stop(self) -> None:
        self._reads, self._kept = False, bytearray()


def _usage_in(answer: object) -> Mapping[str, Any] | None:
    """Return the report in a whole response, or in one event of a stream."""
    if not isinstance(answer, dict):
        return None
    fields = cast("dict[str, Any]", answer)
    for holder in (fields, fields.get("response"), fields.get("message")):
        usage = cast("dict[str, Any]", holder).get("usage") if isinstance(holder, dict) else None
        if isinstance(usage, dict):
            # Some servers begin a stream with zeros and report the figures at its end.
            return {name: value for name, value in cast("dict[str, Any]", usage).items() if value}
    return None
