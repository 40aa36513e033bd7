"""What a model adds to a summary: read out of its JSON, whatever names and forms it chose, and made plain text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from compact.core.summary.summary import Decision, OpenItem, ToolOutcome

_DECISIONS = ("decisions", "key_decisions", "key_technical_decisions", "decision_log")
_OPEN = ("open_items", "pending_work", "next_steps", "outstanding_actions", "blockers")
_CLOSED = ("closed_items", "done_items")
_OUTCOMES = ("tool_outcomes", "completed_work", "changes", "work_done")
_FACTS = ("facts", "key_facts")
_ERRORS = ("errors", "errors_and_resolutions")
_STORY = ("narrative", "summary")
_STATE = ("current_state",)
KNOWN = frozenset((*_DECISIONS, *_OPEN, *_CLOSED, *_OUTCOMES, *_FACTS, *_ERRORS, *_STORY, *_STATE))
_LABELS = ("tool", "file_path", "file", "path", "component")
_PRIORITIES = ("high", "normal", "low")
# Text that would look like a part of the prompt's own structure.
_TAGS = re.compile(r"<(/?(?:COMPACT-SUMMARY|record-)[^>]*)>?", re.IGNORECASE)
_HEADING = re.compile(r"^[ \t]*#+[ \t]*", re.MULTILINE)
_NOTHING = re.compile(r"[-–—.…\s]*|none|n/?a|null", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """What is new, and what of the old is over: `closed` are handles of earlier entries, or their words."""

    decisions: tuple[Decision, ...] = ()
    open_items: tuple[OpenItem, ...] = ()
    tool_outcomes: tuple[ToolOutcome, ...] = ()
    facts: tuple[str, ...] = ()
    narrative: str = ""
    closed: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """True if it changes nothing."""
        return not (any(self.texts()) or self.closed)

    def texts(self) -> Iterator[str]:
        """Every text in it."""
        yield from (f"{decision.decision} {decision.rationale}".strip() for decision in self.decisions)
        yield from (item.item for item in self.open_items)
        yield from map(as_line, self.tool_outcomes)
        yield from self.facts
        if self.narrative:
            yield self.narrative


def as_line(outcome: ToolOutcome) -> str:
    """What was done, and to what, if that is known."""
    return f"{outcome.tool}: {outcome.outcome}" if outcome.tool else outcome.outcome


def read_delta(data: Mapping[str, Any], names: Mapping[str, str]) -> Delta:
    """A delta out of a model's JSON; `names` leads from ids in the prompt to those of messages, others are dropped."""
    others = (key for key in data if key not in KNOWN)
    return Delta(
        decisions=tuple(filter(_says, (_decision(entry, names) for entry in _entries(data, _DECISIONS)))),
        open_items=tuple(filter(_says, (_open_item(entry, names) for entry in _entries(data, _OPEN)))),
        tool_outcomes=tuple(filter(_says, (_outcome(entry, names) for entry in _entries(data, _OUTCOMES)))),
        facts=tuple(
            dict.fromkeys(
                filter(
                    None,
                    (
                        *(_line(entry) for entry in _entries(data, _FACTS)),
                        *(_error(entry) for entry in _entries(data, _ERRORS)),
                        *(_labelled(key, entry) for key in others for entry in _entries(data, (key,))),
                    ),
                )
            )
        ),
        narrative=_story(data),
        closed=tuple(filter(None, (_line(entry) for entry in _entries(data, _CLOSED)))),
    )


def plain(text: str, *, is_line: bool = False) -> str:
    """Text that cannot be taken for a heading, a tag or a fence of ours."""
    # Taking a mark out may join what stood around it to another.
    while (cleaned := _TAGS.sub(r"\1", text)) != text:
        text = cleaned
    text = _HEADING.sub("", text)
    return " ".join(text.split()) if is_line else "\n".join(line.rstrip() for line in text.strip().splitlines())


def _entries(data: Mapping[str, Any], keys: Iterable[str]) -> Iterator[Any]:
    for key in keys:
        value = data.get(key)
        if isinstance(value, list | tuple):
            yield from cast(Iterable[Any], value)
        elif value:
            yield value


def _decision(entry: Any, names: Mapping[str, str]) -> Decision:
    if not isinstance(entry, Mapping):
        return Decision(_line(entry))
    entry = cast(Mapping[str, Any], entry)
    text, why = _field(entry, "decision", "text", "what"), _field(entry, "rationale", "reason", "why")
    if not {"step_id", "inputs", "outputs"} & set(entry):
        return Decision(text, why, _sources(entry.get("source_ids"), names))
    sources = _sources([entry.get("step_id"), *_listed(entry.get("source_ids"))], names)
    shown = next((name for name, message_id in names.items() if sources and message_id == sources[0]), "-")
    parts = (text, why, _field(entry, "inputs"), _field(entry, "outputs"))
    return Decision(f"[{shown}] " + " :: ".join(part or "-" for part in parts) if text else "", "", sources)


def _open_item(entry: Any, names: Mapping[str, str]) -> OpenItem:
    if not isinstance(entry, Mapping):
        return OpenItem(_line(entry))
    entry = cast(Mapping[str, Any], entry)
    priority = _field(entry, "priority").lower()
    sources = _sources(entry.get("source_ids"), names)
    text = _field(entry, "item", "text", "task", "description")
    return OpenItem(text, priority if priority in _PRIORITIES else "normal", sources)


def _outcome(entry: Any, names: Mapping[str, str]) -> ToolOutcome:
    if not isinstance(entry, Mapping):
        label, mark, rest = _line(entry).partition(": ")
        return ToolOutcome(label, rest) if mark else ToolOutcome("", label)
    entry = cast(Mapping[str, Any], entry)
    what = _field(entry, "outcome", "change", "description", "result", "summary")
    pieces = (
        ": ".join(filter(None, (_field(entry, "action"), what))),
        f"why: {why}" if (why := _field(entry, "why", "rationale")) else "",
        f"follow-up: {follow_up}" if (follow_up := _field(entry, "follow_up")) else "",
    )
    label = _field(entry, *_LABELS)
    text = "; ".join(filter(None, pieces)) if what or label else ""
    return ToolOutcome(label, text, _sources(entry.get("source_ids"), names))


def _error(entry: Any) -> str:
    if not isinstance(entry, Mapping):
        return _line(entry)
    entry = cast(Mapping[str, Any], entry)
    error, resolution = _field(entry, "error", "text"), _field(entry, "resolution", "fix")
    return f"{error} → {resolution or 'not resolved'}" if error else ""


def _labelled(key: str, entry: Any) -> str:
    line = _line(entry)
    return f"{_line(key.replace('_', ' '))}: {line}" if line else ""


def _story(data: Mapping[str, Any]) -> str:
    pieces = [plain(str(entry)) for entry in _entries(data, _STORY)]
    for state in _entries(data, _STATE):
        if isinstance(state, Mapping):
            lines = cast(Mapping[str, Any], state).items()
            pieces += [f"{str(key).replace('_', ' ').capitalize()}: {_line(value)}" for key, value in lines if value]
        else:
            pieces.append(plain(str(state)))
    return "\n".join(piece for piece in pieces if not _NOTHING.fullmatch(piece))


def _field(entry: Mapping[str, Any], *keys: str) -> str:
    found = next((entry[key] for key in keys if entry.get(key)), "")
    return _line(found)


def _line(value: Any) -> str:
    """Any value as one line; what only says that there is nothing is nothing."""
    if isinstance(value, Mapping):
        pairs = cast(Mapping[str, Any], value).items()
        text = "; ".join(f"{key}: {_line(inner)}" for key, inner in pairs if inner)
    elif isinstance(value, list | tuple):
        text = "; ".join(filter(None, (_line(inner) for inner in cast(Iterable[Any], value))))
    else:
        text = "" if value is None else str(value)
    line = plain(text, is_line=True)
    return "" if _NOTHING.fullmatch(line) else line


def _sources(value: Any, names: Mapping[str, str]) -> tuple[str, ...]:
    """The messages that an entry names, those that are not in the prompt left out."""
    words = (word for entry in _listed(value) for word in re.split(r"[\s,;\[\]()]+", str(entry)) if word)
    return tuple(dict.fromkeys(names[word] for word in words if word in names))


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(cast(Iterable[Any], value)) if isinstance(value, list | tuple) else [value]


def _says(entry: Decision | OpenItem | ToolOutcome) -> bool:
    match entry:
        case Decision():
            return bool(entry.decision)
        case OpenItem():
            return bool(entry.item)
        case ToolOutcome():
            return bool(entry.outcome)
