"""What a model adds to a summary: read out of its JSON, whatever names and forms it chose, and made plain text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from compact.core.facts.text import one_line
from compact.core.summary.summary import Decision, OpenItem, ToolOutcome

# The names under which models answer; ours first.
_DECISIONS = ("decisions", "key_decisions", "key_technical_decisions", "decision_log")
_OPEN = ("open_items", "pending_work", "next_steps", "outstanding_actions", "blockers")
_CLOSED = ("closed_items", "done_items")
_OUTCOMES = ("tool_outcomes", "completed_work", "changes", "work_done")
_FACTS = ("facts", "key_facts")
_ERRORS = ("errors", "errors_and_resolutions")
_NARRATIVE = ("narrative", "summary")
_STATE = ("current_state",)
KNOWN_FIELDS = frozenset((*_DECISIONS, *_OPEN, *_CLOSED, *_OUTCOMES, *_FACTS, *_ERRORS, *_NARRATIVE, *_STATE))
_OUTCOME_SUBJECTS = ("tool", "file_path", "file", "path", "component")
_PRIORITIES = ("high", "normal", "low")
# Text that would look like a part of the prompt's own structure.
_TAGS = re.compile(r"<(/?(?:COMPACT-SUMMARY|record-)[^>]*)>?", re.IGNORECASE)
_HEADING = re.compile(r"^[ \t]*#+[ \t]*", re.MULTILINE)
_NOTHING = re.compile(r"[-–—.…\s]*|(?:none|nothing|n/?a|null)[.!\s]*", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryDelta:
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
        """Yield every text in it."""
        yield from (f"{decision.decision} {decision.rationale}".strip() for decision in self.decisions)
        yield from (item.item for item in self.open_items)
        yield from map(as_line, self.tool_outcomes)
        yield from self.facts
        if self.narrative:
            yield self.narrative


def as_line(outcome: ToolOutcome) -> str:
    """Return what was done, and to what, if that is known."""
    return f"{outcome.tool}: {outcome.outcome}" if outcome.tool else outcome.outcome


def read_delta(data: Mapping[str, Any], message_ids: Mapping[str, str]) -> SummaryDelta:
    """Return the delta in a model's JSON; `message_ids` has what is named in the prompt, other names are dropped."""
    others = (key for key in data if key not in KNOWN_FIELDS)
    return SummaryDelta(
        decisions=tuple(filter(_has_text, (_decision(entry, message_ids) for entry in _entries(data, _DECISIONS)))),
        open_items=tuple(filter(_has_text, (_open_item(entry, message_ids) for entry in _entries(data, _OPEN)))),
        tool_outcomes=tuple(filter(_has_text, (_outcome(entry, message_ids) for entry in _entries(data, _OUTCOMES)))),
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
        narrative=_narrative(data),
        closed=tuple(filter(None, (_line(entry) for entry in _entries(data, _CLOSED)))),
    )


def without_markup(text: str) -> str:
    """Return a text that cannot be taken for a heading, a tag or a fence of ours."""
    # Taking a mark out may join what stood around it to another.
    while (cleaned := _TAGS.sub(r"\1", text)) != text:
        text = cleaned
    return "\n".join(line.rstrip() for line in _HEADING.sub("", text).strip().splitlines())


def _entries(data: Mapping[str, Any], keys: Iterable[str]) -> Iterator[Any]:
    for key in keys:
        value = data.get(key)
        if isinstance(value, list | tuple):
            yield from cast(Iterable[Any], value)
        elif value:
            yield value


def _decision(entry: Any, message_ids: Mapping[str, str]) -> Decision:
    if not isinstance(entry, Mapping):
        return Decision(_line(entry))
    entry = cast(Mapping[str, Any], entry)
    text, why = _field(entry, "decision", "text", "what"), _field(entry, "rationale", "reason", "why")
    if not {"step_id", "inputs", "outputs"} & set(entry):
        return Decision(text, why, _sources(entry.get("source_ids"), message_ids))
    sources = _sources([entry.get("step_id"), *_listed(entry.get("source_ids"))], message_ids)
    step = next((name for name, message_id in message_ids.items() if sources and message_id == sources[0]), "-")
    parts = (text, why, _field(entry, "inputs"), _field(entry, "outputs"))
    return Decision(f"[{step}] " + " :: ".join(part or "-" for part in parts) if text else "", "", sources)


def _open_item(entry: Any, message_ids: Mapping[str, str]) -> OpenItem:
    if not isinstance(entry, Mapping):
        return OpenItem(_line(entry))
    entry = cast(Mapping[str, Any], entry)
    priority = _field(entry, "priority").lower()
    sources = _sources(entry.get("source_ids"), message_ids)
    text = _field(entry, "item", "text", "task", "description")
    return OpenItem(text, priority if priority in _PRIORITIES else "normal", sources)


def _outcome(entry: Any, message_ids: Mapping[str, str]) -> ToolOutcome:
    if not isinstance(entry, Mapping):
        subject, mark, rest = _line(entry).partition(": ")
        return ToolOutcome(subject, rest) if mark else ToolOutcome("", subject)
    entry = cast(Mapping[str, Any], entry)
    what = _field(entry, "outcome", "change", "description", "result", "summary")
    pieces = (
        ": ".join(filter(None, (_field(entry, "action"), what))),
        f"why: {why}" if (why := _field(entry, "why", "rationale")) else "",
        f"follow-up: {follow_up}" if (follow_up := _field(entry, "follow_up")) else "",
    )
    subject = _field(entry, *_OUTCOME_SUBJECTS)
    text = "; ".join(filter(None, pieces)) if what or subject else ""
    return ToolOutcome(subject, text, _sources(entry.get("source_ids"), message_ids))


def _error(entry: Any) -> str:
    if not isinstance(entry, Mapping):
        return _line(entry)
    entry = cast(Mapping[str, Any], entry)
    error, resolution = _field(entry, "error", "text"), _field(entry, "resolution", "fix")
    return f"{error} → {resolution or 'not resolved'}" if error else ""


def _labelled(key: str, entry: Any) -> str:
    line = _line(entry)
    return f"{_line(key.replace('_', ' '))}: {line}" if line else ""


def _narrative(data: Mapping[str, Any]) -> str:
    pieces = [without_markup(str(entry)) for entry in _entries(data, _NARRATIVE)]
    for state in _entries(data, _STATE):
        if isinstance(state, Mapping):
            lines = cast(Mapping[str, Any], state).items()
            pieces += [f"{str(key).replace('_', ' ').capitalize()}: {_line(value)}" for key, value in lines if value]
        else:
            pieces.append(without_markup(str(state)))
    return "\n".join(piece for piece in pieces if not _NOTHING.fullmatch(piece))


def _field(entry: Mapping[str, Any], *keys: str) -> str:
    found = next((entry[key] for key in keys if entry.get(key)), "")
    return _line(found)


def _line(value: Any) -> str:
    """Return any value as one line; what only says that there is nothing is ""."""
    if isinstance(value, Mapping):
        pairs = cast(Mapping[str, Any], value).items()
        text = "; ".join(f"{key}: {_line(inner)}" for key, inner in pairs if inner)
    elif isinstance(value, list | tuple):
        text = "; ".join(filter(None, (_line(inner) for inner in cast(Iterable[Any], value))))
    else:
        text = "" if value is None else str(value)
    line = one_line(without_markup(text))
    return "" if _NOTHING.fullmatch(line) else line


def _sources(value: Any, message_ids: Mapping[str, str]) -> tuple[str, ...]:
    """Return the messages that an entry names; those that are not in the prompt are left out."""
    words = (word for entry in _listed(value) for word in re.split(r"[\s,;\[\]()]+", str(entry)) if word)
    return tuple(dict.fromkeys(message_ids[word] for word in words if word in message_ids))


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(cast(Iterable[Any], value)) if isinstance(value, list | tuple) else [value]


def _has_text(entry: Decision | OpenItem | ToolOutcome) -> bool:
    match entry:
        case Decision():
            return bool(entry.decision)
        case OpenItem():
            return bool(entry.item)
        case ToolOutcome():
            return bool(entry.outcome)
