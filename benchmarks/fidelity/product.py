"""The product, through its front door, and the gates that no output may fail."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from compact import CompactConfig, CompactManager
from compact.core.messages.entries import read_entry
from compact.core.messages.legality import check_chat
from compact.measuring.recordings import Wire, text_of
from compact.measuring.specifics import specific_names
from fidelity.transcripts import MODEL, token_counts

WINDOW = 1_000_000
_NOWHERE = {"state": {"url": "memory:"}, "storage": {"adapter": "none"}, "telemetry": {"exporter": "none"}}
# Text of our own in an output: the summary's frame, stubs that say how content comes back, cuts inside arguments.
_OWN_MARKS = re.compile(
    r"</?COMPACT-SUMMARY[^>\n]*>"
    r"|^Stands for .*$"
    r"|\[[^\n]*?\brecall [\w.-]+(?: brings it back)?\]"
    r"|… [\d.,k]+ characters cut …",
    re.MULTILINE,
)
_names = count()


@dataclass(frozen=True, slots=True)
class Failure:
    """A gate that an output failed."""

    gate: str
    transcript: str
    detail: str


def new_manager() -> CompactManager:
    """A manager that writes nothing anywhere and compacts only when told."""
    return CompactManager(CompactConfig(model=MODEL, max_context_tokens=WINDOW, **_NOWHERE))


def compact_once(messages: Sequence[Wire], target_tokens: int, manager: CompactManager | None = None) -> list[Wire]:
    """One compaction in a session of its own."""
    manager = manager or new_manager()
    session = f"fidelity-{next(_names)}"
    try:
        return manager.manual_compact(session, messages, target_tokens=target_tokens)
    finally:
        manager.delete(session)


def check_output(
    name: str, before: Sequence[Wire], after: Sequence[Wire], target_tokens: int, *, invented: bool = True
) -> list[Failure]:
    """The gates that one look at an output can tell: legal, within budget, nothing invented."""
    failures: list[Failure] = []
    violations = check_chat([read_entry(message, "messages") for message in after])
    if violations:
        failures.append(Failure("legal", name, f"{len(violations)} violations, first: {violations[0]}"))
    tokens = sum(token_counts(after))
    if tokens > target_tokens:
        failures.append(Failure("budget", name, f"{tokens:,} tokens of {target_tokens:,} allowed"))
    strings = invented_strings(before, after) if invented else []
    if strings:
        failures.append(Failure("invented", name, f"{len(strings)} strings, such as {strings[:5]}"))
    return failures


def invented_strings(before: Sequence[Wire], after: Sequence[Wire]) -> list[str]:
    """Names and numbers of an output that its input does not hold, marks of our own aside."""
    known = "\n".join([text_of(before), *map(_wire_text, before)])
    kept = {id(message) for message in before}
    new = [message for message in after if id(message) not in kept]
    text = _OWN_MARKS.sub("\n", text_of(new))
    return sorted(name for name in specific_names(text) if name not in known)


def check_repeatable(name: str, before: Sequence[Wire], after: Sequence[Wire], target_tokens: int) -> list[Failure]:
    """The gates that need further compactions: the same again, and compacting the result changes nothing or shrinks."""
    failures: list[Failure] = []
    if compact_once(before, target_tokens) != list(after):
        failures.append(Failure("deterministic", name, "a second compaction of the same history differs"))
    size, again = sum(token_counts(after)), sum(token_counts(compact_once(after, target_tokens)))
    if again > size:
        failures.append(Failure("idempotent", name, f"its own output grew from {size:,} to {again:,} tokens"))
    return failures


def _wire_text(message: Wire) -> str:
    """What a message says besides its texts: the names it uses, its arguments as they are sent."""
    calls = (json.dumps(call, ensure_ascii=False) for call in message.get("tool_calls") or ())
    return "\n".join([message.get("name") or "", *calls])
