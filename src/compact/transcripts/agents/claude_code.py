"""Claude Code: `~/.claude/projects/<folder>/<session>.jsonl`, one line for each piece of a message.

Lines name their parent, so that a session is a tree: winding back starts another branch. The branch that the session
ended with is read. Lines of subagents (`isSidechain`) are sessions of their own. A compaction is a line
`compact_boundary`, and a user message `isCompactSummary` behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compact.core.json_data import is_mapping
from compact.transcripts.builder import LogBuilder
from compact.transcripts.forms.anthropic_blocks import add_message, answered_ids, call_ids
from compact.transcripts.logs import AgentLog
from compact.transcripts.parts import Fields, content_of, list_of, mapping_of, text_field, text_of

NAME = "Claude Code"
_MESSAGES = frozenset({"user", "assistant"})
# Lines that are no part of the conversation: titles, snapshots of files, the state of the screen (2025 and 2026).
_OTHER_LINES = frozenset(
    {"system", "attachment", "progress", "summary", "file-history-snapshot", "queue-operation", "last-prompt"}
    | {"ai-title", "custom-title", "agent-name", "agent-color", "agent-setting", "mode", "permission-mode", "tag"}
    | {"pr-link", "worktree-state", "content-replacement", "marble-origami-commit", "speculation-accept", "started"}
    | {"attribution-snapshot", "result", "bridge-session", "forked-from", "relocated", "fork-context-ref"}
)
# What the harness writes in the name of the user or of the model.
_SYNTHETIC_MODEL = "<synthetic>"


@dataclass(frozen=True, slots=True)
class _Line:
    place: str
    number: int
    fields: Fields

    @property
    def message(self) -> Fields:
        return mapping_of(self.fields.get("message"))

    @property
    def is_boundary(self) -> bool:
        return self.fields.get("subtype") == "compact_boundary" or bool(self.fields.get("isCompactSummary"))


def recognises(head: Sequence[object]) -> bool:
    """Return True for lines with `sessionId` and `uuid` around a message of Anthropic's."""
    return any(_is_message(value) for value in head)


def _is_message(value: object) -> bool:
    if not is_mapping(value) or value.get("type") not in _MESSAGES or "uuid" not in value:
        return False
    message = value.get("message")
    return is_mapping(message) and "content" in message and "parts" not in message


def read(items: Iterable[tuple[str, Any]]) -> list[AgentLog]:
    """Return the session, and those of its subagents that are in the same file."""
    main = LogBuilder(NAME)
    lines: list[_Line] = []
    branches: dict[str, list[_Line]] = {}
    seen: set[str] = set()
    for number, (place, value) in enumerate(items):
        fields = mapping_of(value)
        uuid, kind = text_field(fields, "uuid"), fields.get("type")
        main.version = text_field(fields, "version") or main.version
        main.session_id = main.session_id or text_field(fields, "sessionId")
        if kind not in _MESSAGES and kind not in _OTHER_LINES:
            main.note_unknown(f"type {kind!r}" if kind else "line without a type", place)
        if not uuid or uuid in seen:
            continue
        seen.add(uuid)
        line = _Line(place, number, fields)
        if fields.get("isSidechain"):
            branches.setdefault(text_field(fields, "agentId") or "subagent", []).append(line)
        else:
            lines.append(line)
    subagents = [_subagent(name, own, main) for name, own in branches.items()]
    if not lines:
        return subagents
    _add(main, lines)
    return [main.build(), *subagents]


def _subagent(name: str, lines: list[_Line], main: LogBuilder) -> AgentLog:
    own = LogBuilder(NAME, main.version, f"{main.session_id}/{name}", parent_id=main.session_id)
    _add(own, lines)
    return own.build()


def _add(builder: LogBuilder, lines: Sequence[_Line]) -> None:
    active = _active(lines)
    positions: dict[str, int] = {}
    metadata: Fields = {}
    for line in active:
        fields, kind = line.fields, line.fields.get("type")
        if fields.get("subtype") == "compact_boundary":
            metadata = mapping_of(fields.get("compactMetadata"))
        elif fields.get("isCompactSummary"):
            _add_compaction(builder, line, metadata, positions)
        elif kind == "attachment":
            _add_attachment(builder, mapping_of(fields.get("attachment")))
        elif kind in _MESSAGES and not _is_from_harness(fields):
            message = line.message
            builder.model = text_field(message, "model") or builder.model
            name = "injected" if fields.get("isMeta") or _is_command(message) else ""
            add_message(builder, message, place=line.place, key=message.get("id"), name=name)
        positions[fields["uuid"]] = len(builder.messages) - 1


def _is_command(message: Fields) -> bool:
    """Return True for the record of a command of the program, and for what it printed."""
    content = message.get("content")
    return isinstance(content, str) and content.startswith(("<command-", "<local-command-", "<bash-"))


def _is_from_harness(fields: Fields) -> bool:
    """Return True for an error of the API that is shown as an answer."""
    message = mapping_of(fields.get("message"))
    return bool(fields.get("isApiErrorMessage")) or message.get("model") == _SYNTHETIC_MODEL


def _add_attachment(builder: LogBuilder, attachment: Fields) -> None:
    """Add what a person typed while the agent was working; other attachments are notes of the harness."""
    if attachment.get("type") == "queued_command":
        builder.say("user", content_of(attachment.get("prompt")))


def _add_compaction(builder: LogBuilder, line: _Line, metadata: Fields, positions: Mapping[str, int]) -> None:
    preserved = mapping_of(metadata.get("preservedMessages"))
    segment = mapping_of(metadata.get("preservedSegment"))
    names = [*list_of(preserved.get("uuids")), text_field(segment, "headUuid"), text_field(segment, "tailUuid")]
    ends = [positions[name] for name in names if name in positions]
    kept = range(min(ends), max(ends) + 1) if ends else ()
    builder.compact(
        text_of(line.message.get("content")),
        place=line.place,
        kept=[position for position in kept if position < len(builder.messages)],
        trigger=text_field(metadata, "trigger"),
        tokens_before=metadata["preTokens"] if isinstance(metadata.get("preTokens"), int) else 0,
    )


# -- the branch that the session ended with ---------------------------------------------------------------------------


def _active(lines: Sequence[_Line]) -> list[_Line]:
    """Return the lines of the last branch, in the order of the file.

    Calls that are made at once are lines below each other, each with its result beside the next call: they belong to
    the branch although the way from the last line to the first one does not pass all of them.
    """
    by_uuid = {line.fields["uuid"]: line for line in lines}
    earlier = dict(zip((line.number for line in lines[1:]), lines, strict=False))
    last = next((line for line in reversed(lines) if line.fields.get("type") in _MESSAGES), None)
    on_path: set[str] = set()
    while last and last.fields["uuid"] not in on_path:
        on_path.add(last.fields["uuid"])
        last = _parent(last, by_uuid, earlier)
    answers = {text_field(line.message, "id") for line in lines if line.fields["uuid"] in on_path} - {""}
    calls = {
        call
        for line in lines
        if line.fields["uuid"] in on_path or text_field(line.message, "id") in answers
        for call in call_ids(line.message)
    }
    return [line for line in lines if line.fields["uuid"] in on_path or _belongs(line, answers, calls)]


def _belongs(line: _Line, answers: set[str], calls: set[str]) -> bool:
    """Return True for a piece of an answer that is on the path, and for the result of one of its calls."""
    return text_field(line.message, "id") in answers or any(one in calls for one in answered_ids(line.message))


def _parent(line: _Line, by_uuid: Mapping[str, _Line], earlier: Mapping[int, _Line]) -> _Line | None:
    """Return the line before: its parent; the one above it where a compaction or a missing line breaks the chain."""
    parent = text_field(line.fields, "parentUuid") or text_field(line.fields, "logicalParentUuid")
    if parent in by_uuid:
        return by_uuid[parent]
    return earlier.get(line.number) if parent or line.is_boundary else None
