"""Texts as SQLite keeps them: packed, because logs, plans and events repeat the same names again and again.

PostgreSQL packs long texts by itself, so there they stay texts. What a former version wrote is text in SQLite, too, and
is read as it is.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from itertools import chain
from typing import Any, Literal, TypeAlias

from compact.core.audit.store import StoreError

# Chosen: shorter texts hardly become shorter.
_MIN_CHARS = 24
# The first byte of what is packed: how it was packed, and with which of the dictionaries below.
_FORMAT = 2
_MARK = bytes((_FORMAT,))
# A text is checked when it is read: so many bytes of what is packed are its checksum.
_CHECK_BYTES = 4
# What texts are expected to have, the most frequent last. A changed dictionary is another one, under the next format:
# stores that were written with one need it for ever. That of format 2 is data/packing_2.txt, without any line
# break: words of every conversation, and the forms of events (as `event_text` shortens them), calls and messages.
_FORMER_DICTIONARY = (
    b'the this that with from have which when not are for file error result import return self def class N'
    b'one True False raise if else elif while and or in is lambda print(f"'
    b'{"schema_version": "v2.0", "ledger": [["task", "constraint", "decision", "open_item", "artifact", "]'
    b'], "decisions": [], "tool_outcomes": [], "open_items": [], "facts": [], "narrative": "", "excerpts":'
    b' [["\\u2026", " more calls: ", ""], ["agent:", "user:", "\\u2192", "check": null, "writing": {"summari'
    b'zer": "by code", "instead_of": "", "seconds": 0.0, "is_counted": true}}'
    b'{"session_id": "", "version": 1, "records": [{"action": "summarize", "span": [["m", 1, 9]], "strateg'
    b'y": "summarize", "reason": "", "artifacts": [], "summary": {"action": "externalize", "artifact_id": '
    b'"art-", "sensitivity": "internal"}, {"action": "drop"}, {"action": "clear", "span": ["m"], "strategy'
    b'": "clear", "reason": "old read_file result, 5 turns ago", "tokens_before": 1, "tokens_after": 1, "k'
    b'ept": [[0, 100]], "preserved_fields": {}, "kept_arguments": null}], "pinned": [], "origin": "", "hel'
    b'd": [], "shows_gaps": true, "lines": {}, "regrets": {"found": [], "log_length": 1}, "run": {"seconds'
    b'": 0.0, "failures": [], "model": "gpt-4o", "change": {"economics": {"notes": []}, "prices_after": nu'
    b'll, "summary_model": "", "summary_prices": null}}'
    b'{"type":"trace","trace_id":"","name":"","started_at":"'
    b'"compact.summary_created","input_messages":1,"summary_tokens":1,"compression_ratio":0.2,"summary":"<'
    b'COMPACT-SUMMARY v1>\\n( earlier messages; recall finds them by words or id)\\n## What happened\\n'
    b'"compact.archival","step":1,"storage_adapter":"fs","place":"/archive/transcript-pre-compact-001.json'
    b'l","summary-001.json"'
    b'"compact.proposal_generated","proposals":1,"tokens_freed":1,"compact.content_cleared","message_ids":'
    b'["m","tokens_before":1,"tokens_after":1,"tokens_freed":1,"changed_again":0,"message_count":1,'
    b'"compact.completed","messages_before":1,"messages_after":1,"proposals":{"clear":1,"summarize":1},"ec'
    b'onomics":{"prefix_kept_tokens":1,"prefix_broken_tokens":1,"rewrite_cost":0.0,"summary_cost":0.0,"sav'
    b'ing_per_call":0.0,"break_even_calls":2,"currency":"USD","notes":[]}'
    b'"2026-01-01T00:00:00.000000Z","2027-01-01T00:00:00.000000Z","2028-01-01T00:00:00.000000Z'
    b'{"type":"span","trace_id":"","span_id":"","kind":"event","name":"compact.trigger_decision","started_'
    b'at":"2026-11-16T20:02:36.346652Z","data":{"event":"compact.trigger_decision","status":"ok","session_'
    b'id":"","turn_number":1,"plan_version":1,"triggered":false,"reason":"1,000 tokens, 57.4% of 128,000; '
    b'below the trigger of 108,800","policy":{"enabled":true,"trigger_pct":0.85,"prefetch_pct":0.7,"target'
    b'_pct":0.5,"trigger_tokens":null,"target_tokens":null,"hard_cap_buffer":1500,"output_reserve":0,"part'
    b'_caps":{},"keep_recent_turns":6,"keep_tool_io_pairs":4,"keep_attachment_turns":3,"roles_never_prune"'
    b':["system","developer"],"protected_flag":"protected","summary_form":"task_state","cadence":"batched"'
    b',"expected_calls":20,"strategy":"task_state"},"kept":{},"pruned_count":0,"note":"","focus":"","prote'
    b'cted_ids":[],"protected_labels":{},"duration_seconds":0.0,"output":"},"parent_id":"","ended_at":"202'
    b'6-11-16T20:02:36.346652Z","status":"ok"}'
    b'{"type":"span","trace_id":"","span_id":"","kind":"event","name":"compact.token_estimate","started_at'
    b'":"2026-11-16T20:02:36.346652Z","data":{"event":"compact.token_estimate","status":"ok","session_id":'
    b'"","turn_number":1,"plan_version":1,"model":"gpt-4o","t_est":1000,"max_tokens":128000,"usage_pct":0.'
    b'5,"breakdown":{"system":8,"developer":0,"tools_schema":0,"messages":1},"parts":{"system":8,"summary"'
    b':1,"dialogue":1,"tool_results":1,"stubs":1,"overhead":3},"duration_seconds":0.0},"parent_id":"","end'
    b'ed_at":"2026-11-16T20:02:36.346652Z","status":"ok"}'
    b'{"type":"span","trace_id":"","span_id":"","kind":"operation","name":"compact.preflight","started_at"'
    b':"2026-11-16T20:02:36.346652Z","data":{"event":"compact.operation_ended","status":"ok","session_id":'
    b'"","turn_number":1,"plan_version":1,"operation":"preflight","duration_seconds":0.0,"error_type":""},'
    b'"parent_id":"","ended_at":"2026-11-16T20:02:36.346652Z","status":"ok"}'
    b'{"type":"span","trace_id":"","span_id":"","kind":"event","name":"compact.prompt_ready","started_at":'
    b'"2026-11-16T20:02:36.346652Z","data":{"event":"compact.prompt_ready","status":"ok","session_id":"","'
    b'turn_number":1,"plan_version":1,"model":"gpt-4o","tokens":1,"max_tokens":128000,"usage_pct":0.5,"mes'
    b'sages":1,"duration_seconds":0.0},"parent_id":"","ended_at":"2026-11-16T20:02:36.346652Z","status":"o'
    b'k"}'
    b'{"model": "gpt-4o", "prices": {"fresh": 2.5e-06, "cache_read": 1.25e-06, "cache_write": 2.5e-06, "ou'
    b'tput": 1e-05, "currency": "USD"}, "prices_uncompacted": null, "tokens_uncompacted": 1, "tokens_cache'
    b'd": 1, "contents": {"dialogue": {"user": 1, "assistant": 1}, "tool_results": {"": 1}, "stubs": {"rea'
    b'd_file": 1, "user": 5}}}'
    b'{"window": 128000, "ceiling": 126500, "trigger": 108800, "prefetch": 89600, "target": 64000}{"system'
    b'": 8, "summary": 1, "dialogue": 1, "tool_results": 1, "stubs": 1, "overhead": 3}'
    b' session_{"id":"m1","wire":{"role":"system","content":"{"id":"m1","wire":{"role":"user","content":"{'
    b'"id":"m1","wire":{"role":"assistant","content":null,"tool_calls":[{"id":"call_","type":"function","f'
    b'unction":{"name":"read_file","arguments":"{\\"path\\": \\"src/.py\\"}"}}]}}{"id":"m1","wire":{"role":"to'
    b'ol","tool_call_id":"call_","content":"'
)  # fmt: skip

# What is copied for each text is small: a window for the dictionary and the text, and little memory beside it.
_WINDOW_BITS, _MEMORY_LEVEL, _LEVEL = 15, 5, 6
# Chosen: of a long text a higher level saves a few percent and takes twice the time.
_LONG_BYTES, _LONG_LEVEL = 16_384, 4
# Chosen: with a quarter of the window, and the end of the dictionary, a short text takes two thirds of the time. It is
# read like any other: places in a dictionary are counted from its end.
_SHORT_BYTES, _SHORT_WINDOW_BITS = 256, 13
# So much of a window zlib keeps free.
_FREE_BYTES = 262

# Chosen: how many ids are compared at a time at most.
_LONGEST_STRETCH = 1024
# Ids of messages as they are written: one by one, or where numbers go up by one, the text before them, the first and
# the last.
WrittenIds: TypeAlias = list[str | tuple[str, int, int]]


def packed(text: str) -> str | bytes:
    """Return a text as SQLite keeps it: as bytes where that takes less room."""
    if len(text) < _MIN_CHARS:
        return text
    data = text.encode("utf-8", "surrogatepass")
    kind = "short" if len(data) <= _SHORT_BYTES else "long" if len(data) > _LONG_BYTES else "usual"
    packer = _packer(kind).copy()
    small = packer.compress(data) + packer.flush()
    if len(small) + 1 + _CHECK_BYTES >= len(data):
        return text
    return _MARK + _checksum(data) + small


@cache
def _packer(kind: Literal["short", "usual", "long"]) -> Any:
    """Return what is copied for each text: reading the dictionary anew takes longer than packing the text."""
    is_short = kind == "short"
    bits, level = _SHORT_WINDOW_BITS if is_short else _WINDOW_BITS, _LONG_LEVEL if kind == "long" else _LEVEL
    used = _dictionary()[-((1 << bits) - _FREE_BYTES - _SHORT_BYTES) :] if is_short else _dictionary()
    # Less than none: without the head that zlib writes, which names the dictionary, as our first byte does.
    return zlib.compressobj(level, zlib.DEFLATED, -bits, _MEMORY_LEVEL, zlib.Z_DEFAULT_STRATEGY, used)


@cache
def _dictionary() -> bytes:
    return files("compact.stores").joinpath("data", "packing_2.txt").read_bytes()


def _checksum(data: bytes) -> bytes:
    return zlib.crc32(data).to_bytes(_CHECK_BYTES, "big")


def unpacked(stored: str | bytes | None) -> str | None:
    """Return the text that `packed` made a stored value of.

    Raises:
        StoreError: The bytes are damaged, or of a format that this build does not know.
    """
    if not isinstance(stored, bytes):
        return stored
    read = _READERS.get(stored[0]) if stored else None
    try:
        data = read(stored) if read else None
        if data is not None:
            return data.decode("utf-8", "surrogatepass")
    except (zlib.error, UnicodeDecodeError) as error:
        raise _damaged() from error
    raise _damaged()


def _read_former(stored: bytes) -> bytes | None:
    reader = zlib.decompressobj(zdict=_FORMER_DICTIONARY)
    data = reader.decompress(stored[1:])
    return data if reader.eof and not reader.unused_data else None


def _read(stored: bytes) -> bytes | None:
    reader = zlib.decompressobj(-_WINDOW_BITS, zdict=_dictionary())
    data = reader.decompress(stored[1 + _CHECK_BYTES :])
    is_whole = reader.eof and not reader.unused_data and stored[1 : 1 + _CHECK_BYTES] == _checksum(data)
    return data if is_whole else None


_READERS = {1: _read_former, _FORMAT: _read}


def _damaged() -> StoreError:
    return StoreError(
        "a row of the store is damaged: it is not what was written",
        hint="check the disk, and restore the store from a backup; other sessions in it can be used",
    )


def written_ids(ids: Iterable[str]) -> WrittenIds:
    """Return ids with each run of numbers (`m7`, `m8`, `m9`) as one entry; a summary may stand for thousands."""
    every, written, place = list(ids), WrittenIds(), 0
    while place < len(every):
        head, first = _split(every[place])
        length = 1 if first is None else _run_length(every, place, head, first)
        written.append(every[place] if first is None or length == 1 else (head, first, first + length - 1))
        place += length
    return written


def _run_length(ids: Sequence[str], place: int, head: str, first: int) -> int:
    """Return how many ids, from a place on, are numbers that go up by one behind the same text."""
    length, most = 1, len(ids) - place
    stretch = 1
    while stretch and length < most:
        start, end = length, min(length + stretch, most)
        # Compared in C: a run is mostly as long as the session.
        expected = [f"{head}{number}" for number in range(first + start, first + end)]
        is_same = ids[place + start : place + end] == expected
        length = end if is_same else length
        stretch = min(2 * stretch, _LONGEST_STRETCH) if is_same else stretch // 2
    return length


def read_ids(written: Sequence[Any]) -> tuple[str, ...]:
    """Return the ids that `written_ids` wrote, perhaps read back from JSON; ids one by one are as good."""
    return tuple(
        chain.from_iterable(
            (entry,) if isinstance(entry, str) else (f"{entry[0]}{number}" for number in range(entry[1], entry[2] + 1))
            for entry in written
        )
    )


def _split(message_id: str) -> tuple[str, int | None]:
    """Return what stands before the number that an id ends with, and the number, if it is written as we would."""
    head = message_id.rstrip("0123456789")
    digits = message_id[len(head) :]
    if not 0 < len(digits) <= 15 or not digits.isascii() or (digits[0] == "0" and len(digits) > 1):
        return message_id, None
    return head, int(digits)
