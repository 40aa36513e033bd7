"""The text that stands for content that left the prompt: what was there, how much, and by which id it comes back.

Tool-call arguments are cut down to chosen parts of the texts in them; what comes out is valid JSON.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from compact.core.facts.text import change_json_leaves
from compact.core.facts.tool_calls import argument_texts, arguments_of
from compact.core.messages.attachments import attachment_id, attachments_of
from compact.core.messages.message import Content, Message, ToolCall
from compact.core.messages.sensitivity import OPEN_SENSITIVITIES, sensitivity_of
from compact.core.plan.plan import AttachmentPointer, ClearRecord, ExternalizationRecord, SpanReference
from compact.core.summary.summary import rounded

# The names under which a plan says that attachments were moved out of the prompt, and that a message was cut.
ATTACHMENTS = "attachments"
SHORTEN = "shorten"
Ranges: TypeAlias = Sequence[tuple[int, int]]
# Shorter texts (paths, names, patterns) say what a call is about: they are never cut.
_SHORT_CHARS = 80


def render_cleared(message: Message, record: ClearRecord) -> Message:
    """Return the message with a stub in place of its content, and whatever the record keeps of it."""
    calls = message.tool_calls
    if record.kept_arguments is not None:
        calls = keep_in_arguments(calls, record.kept_arguments)
    # Content that was never there needs no stub: only the arguments were cut.
    content: Content = _with_stub(message, record) if message.content else message.content
    return replace(message, content=content, tool_calls=calls)


def render_externalized(message: Message, record: ExternalizationRecord) -> Message:
    """Return the message with a pointer in place of its content, or behind its text for each attachment of it."""
    if not record.attachments:
        return replace(message, content=render_externalization_text(record))
    pointers = "\n".join(pointer_line(pointer) for pointer in record.attachments)
    text = message.text if record.kept is None else _cut_text(message, record)
    return replace(message, content=f"{text}\n{pointers}" if text.strip() else pointers)


def pointer_line(pointer: AttachmentPointer) -> str:
    """Return the line that stands for an attachment."""
    artifact = pointer.artifact_id
    return f"[moved to artifact {artifact}: attachment {pointer.line}; recall {artifact} brings it back]"


def attachments_record(message: Message, session_id: str, *, reason: str) -> ExternalizationRecord:
    """Return the record that moves all attachments of a message out of the prompt."""
    sensitivity = sensitivity_of(message)
    # Plans are stored, printed and exported: they quote no name of what is more than internal.
    is_quotable = sensitivity in OPEN_SENSITIVITIES
    pointers = {
        found: AttachmentPointer(found, one.name if is_quotable else "", one.describe(with_name=is_quotable))
        for one in attachments_of(message)
        for found in (attachment_id(session_id, one),)
    }
    return ExternalizationRecord(
        span=SpanReference((message.id,)),
        strategy=ATTACHMENTS,
        reason=f"{reason}: {'; '.join(pointer.line for pointer in pointers.values())}",
        artifact_id=next(iter(pointers)),
        sensitivity=sensitivity,
        attachments=tuple(pointers.values()),
    )


def render_externalization_text(record: ExternalizationRecord) -> str:
    """Return the pointer to an artifact, with the preview that was chosen for it."""
    size, artifact = f"{rounded(record.tokens_before)} tokens", record.artifact_id
    head = f"[moved to artifact {artifact}: {size}; {record.reason}; recall {artifact} brings it back]"
    return f"{head}\n{record.preview}" if record.preview else head


def stub_line(message: Message, record: ClearRecord) -> str:
    """Return one informative line about what was here."""
    text = message.text
    size = f"{rounded(record.tokens_before)} tokens" if text else "content without text"
    other = _other_parts(message)
    fields = "".join(f"; {name}={value}" for name, value in record.preserved_fields.items())
    verb = "shortened" if record.kept else "cleared"
    return f"[{verb}: {size}{other}; {record.reason}{fields}; recall {message.id}]"


def _with_stub(message: Message, record: ClearRecord) -> str:
    """Return the kept pieces in their order, the stub standing in the first gap."""
    text, stub = message.text, stub_line(message, record)
    pieces: list[str] = [] if record.kept and record.kept[0][0] == 0 else [stub]
    for start, end in record.kept:
        if pieces and pieces[-1] != stub:
            pieces.append("…" if stub in pieces else stub)
        pieces.append(text[start:end])
    if stub not in pieces:
        pieces.append(stub)
    return "\n".join(pieces)


def _cut_text(message: Message, record: ExternalizationRecord) -> str:
    """Return what is kept of the text of a message whose attachments were moved, and which was too large even so."""
    bare = replace(message, content=message.text)
    ranges = record.kept or ()
    reason = "too large"
    cut = ClearRecord(
        span=record.span, strategy=record.strategy, reason=reason, tokens_before=record.tokens_before, kept=ranges
    )
    return _with_stub(bare, cut)


def _other_parts(message: Message) -> str:
    if message.content is None or isinstance(message.content, str):
        return ""
    kinds = [str(part.get("type", "part")) for part in message.content if "text" not in part]
    return f", {len(kinds)} × {'/'.join(sorted(set(kinds)))}" if kinds else ""


def keep_in_arguments(calls: Sequence[ToolCall], ranges: Ranges) -> tuple[ToolCall, ...]:
    """Return the calls with only these ranges of their texts, counted through the texts of all calls, one to a line."""
    place, cut = 0, list[ToolCall]()
    for call in calls:
        cut.append(_cut(call, ranges, place))
        place += sum(len(text) + 1 for text in argument_texts(call))
    return tuple(cut)


def _cut(call: ToolCall, ranges: Ranges, place: int) -> ToolCall:
    """Return a call whose texts begin at a place, cut to the ranges."""
    arguments: object = arguments_of(call) or call.arguments
    kept = change_json_leaves(
        arguments, lambda leaf, start: _kept_text(leaf, ranges, place + start) if isinstance(leaf, str) else leaf
    )
    if kept == arguments:
        return call
    named = {"shortened": kept} if isinstance(kept, str) else kept
    return replace(call, arguments=json.dumps(named, ensure_ascii=False))


def _kept_text(text: str, ranges: Ranges, place: int) -> str:
    if len(text) <= _SHORT_CHARS:
        return text
    pieces: list[str] = []
    end_before = 0
    for start, end in ranges:
        start, end = max(0, start - place), min(len(text), end - place)
        if start >= end:
            continue
        pieces.extend(("…",) if start > end_before else ())
        pieces.append(text[start:end])
        end_before = end
    return "\n".join([*pieces, *(("…",) if end_before < len(text) else ())])
