"""pi: `~/.pi/agent/sessions/<folder>/<time>_<id>.jsonl`; entries name their parent from the second version on.

A compaction is an entry with the summary and the id of the first entry that was kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from compact.core.json_data import is_mapping
from compact.transcripts.agents.branches import last_branch
from compact.transcripts.builder import Call, LogBuilder
from compact.transcripts.logs import AgentLog
from compact.transcripts.parts import Fields, content_of, list_of, mapping_of, text_field

NAME = "pi"
_OTHER_ENTRIES = frozenset(
    {"thinking_level_change", "model_change", "custom", "label", "session_info", "session", "leaf"}
)
_READ = frozenset({"message", "compaction", "custom_message", "branch_summary"})


def recognises(head: Sequence[object]) -> bool:
    """Return True if the first line is the header of a session."""
    first = head[0] if head else None
    return is_mapping(first) and first.get("type") == "session" and "id" in first and "cwd" in first


def read(items: Iterable[tuple[str, Any]]) -> list[AgentLog]:
    """Return the session."""
    log = LogBuilder(NAME)
    entries: list[tuple[str, Fields]] = []
    for place, value in items:
        entry = mapping_of(value)
        kind = entry.get("type")
        if kind == "session":
            log.session_id = text_field(entry, "id")
        else:
            # An entry that is not known is part of the way, too.
            entries.append((place, entry))
            if kind not in _READ and kind not in _OTHER_ENTRIES:
                log.note_unknown(f"type {kind!r}", place)
    positions: dict[str, int] = {}
    for number, (place, entry) in enumerate(_branch(entries)):
        positions[text_field(entry, "id") or str(number)] = len(log.messages)
        _add_entry(log, entry, place, positions)
    return [log.build()]


def _branch(entries: Sequence[tuple[str, Fields]]) -> Sequence[tuple[str, Fields]]:
    if not all("id" in entry and "parentId" in entry for _, entry in entries):
        return entries  # The first version of the log had one branch.
    ids = [str(entry["id"]) for _, entry in entries]
    parents = {str(entry["id"]): text_field(entry, "parentId") for _, entry in entries}
    return last_branch(entries, ids, parents)


def _add_entry(log: LogBuilder, entry: Fields, place: str, positions: dict[str, int]) -> None:
    kind = entry.get("type")
    if kind == "message":
        _add_message(log, mapping_of(entry.get("message")), place)
    elif kind == "custom_message":
        log.say("user", content_of(entry.get("content")), name="injected")
    elif kind == "branch_summary":
        log.say("user", text_field(entry, "summary"), name="injected")
    elif kind == "compaction":
        first = positions.get(text_field(entry, "firstKeptEntryId"))
        index = entry.get("firstKeptEntryIndex")
        if first is None and isinstance(index, int):
            # The first version counts entries, the header included.
            first = positions.get(str(index - 1))
        size = entry.get("tokensBefore")
        log.compact(
            text_field(entry, "summary"),
            place=place,
            kept=range(first, len(log.messages)) if first is not None else (),
            tokens_before=size if isinstance(size, int) else 0,
        )


def _add_message(log: LogBuilder, message: Fields, place: str) -> None:
    role = message.get("role")
    if role == "user":
        log.say("user", content_of(message.get("content")))
    elif role == "assistant":
        log.model = text_field(message, "model") or log.model
        _add_answer(log, message)
    elif role == "toolResult":
        log.result(text_field(message, "toolCallId"), content_of(message.get("content")), place=place)
    elif role == "bashExecution":
        if not message.get("excludeFromContext"):
            command, output = text_field(message, "command"), text_field(message, "output")
            log.say("user", f"Ran `{command}`\n{output}".rstrip())
    elif role in ("custom", "hookMessage"):
        log.say("user", content_of(message.get("content")), name="injected")
    else:
        log.note_unknown(f"role {role!r}", place)


def _add_answer(log: LogBuilder, message: Fields) -> None:
    blocks = [mapping_of(block) for block in list_of(message.get("content"))]
    log.thinking += sum(block.get("type") == "thinking" for block in blocks)
    shown = [block for block in blocks if block.get("type") not in ("thinking", "toolCall")]
    calls = [
        Call(text_field(block, "id"), text_field(block, "name"), block.get("arguments", {}))
        for block in blocks
        if block.get("type") == "toolCall"
    ]
    log.answer(content_of(shown) if shown else None, calls)
