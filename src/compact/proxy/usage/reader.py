"""Finds the usage that a provider reports in the bytes of a response, as they come."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any

from compact.adapters.support.usage_reports import usage_in
from compact.proxy.usage.event_frames import FrameError, take_frames

# Chosen: no answer of a model is that long; one of which more would have to be kept is not read.
_MOST_BYTES = 8_000_000
_GZIP = 16 + zlib.MAX_WBITS  # the value by which zlib reads gzip
_EVENTS = b"text/event-stream"
_FRAMES = b"application/vnd.amazon.eventstream"
_LINES = (b"application/x-ndjson", b"application/ndjson", b"application/jsonl", b"application/x-jsonlines")
# A part without one of these reports nothing, and is not parsed.
_WORDS = (b'"usage', b'"prompt_eval_count"')


class UsageReader:
    """Reads the bytes of one response as they come; `usage` is what was reported in them so far."""

    def __init__(self, headers: Mapping[bytes, bytes]) -> None:
        encoding = headers.get(b"content-encoding", b"").strip().lower()
        self._kind = headers.get(b"content-type", b"").split(b";")[0].strip().lower()
        self.usage: Mapping[str, Any] | None = None
        self._unpack = zlib.decompressobj(_GZIP) if encoding in (b"gzip", b"x-gzip") else None
        is_known = self._kind in (_EVENTS, _FRAMES, *_LINES) or self._kind.endswith((b"/json", b"+json"))
        self._reads = is_known and encoding in (b"", b"identity", b"gzip", b"x-gzip")
        self._kept = bytearray()

    def feed(self, data: bytes) -> None:
        """Read the next bytes."""
        if not self._reads:
            return
        try:
            plain = self._unpack.decompress(data, _MOST_BYTES + 1) if self._unpack else data
            if self._unpack and self._unpack.unconsumed_tail:
                self._stop()
                return
            self._kept += plain
            self._read_parts()
        except (zlib.error, FrameError):
            self._stop()
        if len(self._kept) > _MOST_BYTES:
            self._stop()

    def end(self) -> Mapping[str, Any] | None:
        """Read the rest at the end of the response, and return what was reported."""
        if self._reads:
            self._read(bytes(self._kept).removeprefix(b"data:"))
        self._stop()
        return self.usage

    def _read_parts(self) -> None:
        """Read the parts that are complete; those of a whole answer are not."""
        if self._kind == _FRAMES:
            for data in take_frames(self._kept):
                self._read(data)
        elif self._kind in (_EVENTS, *_LINES) and b"\n" in self._kept:
            *lines, rest = bytes(self._kept).split(b"\n")
            self._kept = bytearray(rest)
            for line in lines:
                if self._kind != _EVENTS or line.startswith(b"data:"):
                    self._read(line.removeprefix(b"data:"))

    def _read(self, text: bytes) -> None:
        if not any(word in text for word in _WORDS):
            return
        try:
            found = usage_in(json.loads(text))
        except (ValueError, RecursionError):
            return
        # The first report is about the prompt; later ones may include what tools of the provider have read since.
        self.usage = {**found, **(self.usage or {})} if found else self.usage

    def _stop(self) -> None:
        self._reads, self._kept = False, bytearray()
