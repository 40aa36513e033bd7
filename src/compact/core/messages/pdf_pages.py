"""How many pages a PDF has, read from its objects; bounded work, whatever the file is.

A page is an object of type Page, written in the file or packed into a compressed object stream. The root of the page
tree says how many there are, too: where a file was edited, old pages are still in it, and the smaller number holds.
"""

from __future__ import annotations

import re
import zlib

# Chosen: larger than providers take (32 MB, Anthropic 2025; 50 MB, OpenAI and Gemini 2025); beyond it is not read.
_MAX_FILE_BYTES = 64 * 1024 * 1024
# Chosen: objects of tens of thousands of pages; a packed stream that unpacks to more is not believed.
_MAX_UNPACKED_BYTES = 32 * 1024 * 1024
_MAX_STREAMS = 4096
_MAX_PAGES = 100_000
# Chosen: the dictionary of an object stream, or of a node of the page tree, is shorter.
_NEAR_BYTES = 2048
_PAGE = re.compile(rb"/Type\s{0,8}/Page(?![A-Za-z])")
_NODE = re.compile(rb"/Type\s{0,8}/Pages(?![A-Za-z])")
_COUNT = re.compile(rb"/Count\s{1,8}(\d{1,9})")
_OBJECT_STREAM = re.compile(rb"/Type\s{0,8}/ObjStm(?![A-Za-z])")
_STREAM = re.compile(rb"stream\r?\n")
_NUMBER = re.compile(rb"(\d{1,9})\s{1,8}\d{1,5}\s{1,8}obj(?![a-z])")


def pdf_pages(data: bytes) -> int | None:
    """Return how many pages a PDF has; None if it is none, or cannot be read."""
    if b"%PDF-" not in data[:1024] or len(data) > _MAX_FILE_BYTES:
        return None
    leaves, listed = len(_page_objects(data)), _listed_pages(data)
    for unpacked in _object_streams(data):
        leaves += sum(1 for _ in _PAGE.finditer(unpacked))
        listed = max(listed, _listed_pages(unpacked))
    pages = min(leaves, listed) if leaves and listed else leaves or listed
    return min(pages, _MAX_PAGES) or None


def _page_objects(data: bytes) -> set[bytes]:
    """Return the numbers of the objects that are pages: an object that was written again has the same number."""
    found: set[bytes] = set()
    for match in _PAGE.finditer(data):
        numbers = _NUMBER.findall(data, max(0, match.start() - _NEAR_BYTES), match.start())
        found.add(numbers[-1] if numbers else b"at %d" % match.start())
    return found


def _listed_pages(data: bytes) -> int:
    """Return the largest number of pages that a node of the page tree says are below it."""
    counts = [0]
    for node in _NODE.finditer(data):
        start = max(data.rfind(b"obj", 0, node.start()), data.rfind(b">>", 0, node.start()), node.start() - _NEAR_BYTES)
        found = _COUNT.search(data, max(0, start), node.end() + _NEAR_BYTES)
        counts.append(int(found[1]) if found else 0)
    return max(counts)


def _object_streams(data: bytes) -> list[bytes]:
    streams: list[bytes] = []
    left = _MAX_UNPACKED_BYTES
    for match in _OBJECT_STREAM.finditer(data):
        begin = _STREAM.search(data, match.end(), match.end() + _NEAR_BYTES)
        if not begin or left <= 0 or len(streams) >= _MAX_STREAMS:
            continue
        end = data.find(b"endstream", begin.end())
        packed = data[begin.end() : end if end >= 0 else None]
        try:
            unpacked = zlib.decompressobj().decompress(packed, left)
        except zlib.error:  # another filter, or encrypted
            unpacked = packed
        left -= len(unpacked)
        streams.append(unpacked)
    return streams
