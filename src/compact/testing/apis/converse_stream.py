"""Answers of Bedrock's Converse as a stream, in the binary framing of AWS (application/vnd.amazon.eventstream)."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator, Mapping
from typing import Any
from zlib import crc32

EVENT_STREAM = "application/vnd.amazon.eventstream"
_STRING = 7  # the type of a header's value


def stream_converse(answer: Mapping[str, Any], request: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield an answer as events; the last one has its usage."""
    yield frame_event("messageStart", {"role": "assistant"})
    for place, block in enumerate(answer["output"]["message"]["content"]):
        used = block.get("toolUse")
        if used:
            start = {"toolUse": {"toolUseId": used["toolUseId"], "name": used["name"]}}
            yield frame_event("contentBlockStart", {"contentBlockIndex": place, "start": start})
        text = json.dumps(used["input"]) if used else block["text"]
        for word in re.findall(r"\s*\S+|\s+", text):
            delta: dict[str, Any] = {"toolUse": {"input": word}} if used else {"text": word}
            yield frame_event("contentBlockDelta", {"contentBlockIndex": place, "delta": delta})
        yield frame_event("contentBlockStop", {"contentBlockIndex": place})
    yield frame_event("messageStop", {"stopReason": answer["stopReason"]})
    yield frame_event("metadata", {"usage": answer["usage"], "metrics": answer["metrics"]})


def frame_event(kind: str, data: Mapping[str, Any]) -> bytes:
    """Return an event in its frame: lengths, a checksum of these, headers, data, and a checksum of all."""
    named = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
    headers = b"".join(map(_header, named.items()))
    payload = json.dumps(data).encode()
    lengths = struct.pack("!II", 16 + len(headers) + len(payload), len(headers))
    frame = lengths + struct.pack("!I", crc32(lengths)) + headers + payload
    return frame + struct.pack("!I", crc32(frame))


def _header(header: tuple[str, str]) -> bytes:
    name, value = (text.encode() for text in header)
    return struct.pack("!B", len(name)) + name + struct.pack("!BH", _STRING, len(value)) + value
