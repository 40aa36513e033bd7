"""`compact inspect`: what a transcript is made of, and how full the window is."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from compact.cli import screen
from compact.cli.options import AsJson, ConfigFile, File, Index, RecordedModel, Window
from compact.cli.settings import for_recorded_model, load_agent_config
from compact.cli.transcripts.files import read_transcript
from compact.cli.transcripts.measure import SESSION, MeasuredTranscript, measure
from compact.core.messages.attachments import text_with_attachments

if TYPE_CHECKING:
    from compact.config import CompactConfig
    from compact.core.engine.status import SessionStatus
    from compact.core.messages.message import Message

# Chosen: what fits on a screen.
_BIGGEST = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class _Inspection:
    """Everything that is shown, as data; each list is one table."""

    window: dict[str, Any]
    parts: list[dict[str, Any]]
    kept: list[dict[str, Any]]
    roles: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    biggest: list[dict[str, Any]]

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as one object."""
        tables = {"parts": self.parts, "kept": self.kept, "roles": self.roles, "tools": self.tools}
        return {**self.window, **tables, "biggest": self.biggest}


def inspect(
    file: File,
    index: Index = 0,
    model: RecordedModel = None,
    window: Window = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Show what a transcript consists of, and how full the window is.

    Lists tokens by part of the prompt, by role and by tool, what a compaction would keep, and the largest messages.
    """
    settings = load_agent_config(config, model=model, window=window)
    transcript = read_transcript(file, index)
    settings = for_recorded_model(settings, transcript.model)
    with screen.spinner(f"counting {screen.quantity(len(transcript.messages), 'message')}"):
        measured = measure(settings, transcript)
        inspection = _inspect(measured, settings)
    screen.show_warnings(measured.events)
    if as_json:
        screen.write_json(inspection.to_dict())
    else:
        _show(inspection)


def _inspect(measured: MeasuredTranscript, settings: CompactConfig) -> _Inspection:
    status = measured.manager.status(SESSION)
    return _Inspection(
        window=_window(measured, status, settings),
        parts=_parts(status),
        kept=_kept(measured, settings),
        roles=_roles(measured),
        tools=_tools(measured),
        biggest=_biggest(measured),
    )


def _window(measured: MeasuredTranscript, status: SessionStatus, settings: CompactConfig) -> dict[str, Any]:
    return {
        "model": settings.model,
        "messages": len(measured.messages),
        "turns": status.turn_number,
        "used_tokens": status.used_tokens,
        "max_context_tokens": status.max_context_tokens,
        "usage_pct": round(status.usage_pct, 4),
        "thresholds": dict(status.thresholds),
    }


def _parts(status: SessionStatus) -> list[dict[str, Any]]:
    """Return the parts of the prompt that there are, in its order."""
    total = sum(part.tokens for part in status.parts.values())
    return [
        {
            "part": name,
            "messages": part.messages,
            "tokens": part.tokens,
            "share": _share(part.tokens, total),
        }
        for name, part in status.parts.items()
    ]


def _kept(measured: MeasuredTranscript, settings: CompactConfig) -> list[dict[str, Any]]:
    """Return what a compaction keeps verbatim, by the rule that keeps it, and what is left for it to compact.

    `count` is how many turns or calls the rule keeps, if it counts any.
    """
    from compact.assembly.rules import build_rules
    from compact.core.messages.groups import group_messages
    from compact.core.plan.layers import partition

    layers = partition(measured.messages, group_messages(measured.messages), build_rules(settings))
    named = {
        "pinned": (None, layers.pinned),
        "recent turns": (layers.recent_turns, layers.recent),
        "recent tool calls": (layers.tool_pairs, layers.tool_io),
        "not kept": (None, layers.remainder),
    }
    return [
        {
            "kept_by": name,
            "count": count,
            "messages": len(places),
            "tokens": sum(measured.tokens[place] for place in places),
        }
        for name, (count, places) in named.items()
    ]


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 0.0


def _roles(measured: MeasuredTranscript) -> list[dict[str, Any]]:
    messages: Counter[str] = Counter()
    tokens: Counter[str] = Counter()
    for message, size in zip(measured.messages, measured.tokens, strict=True):
        messages[message.role] += 1
        tokens[message.role] += size
    total = sum(measured.tokens)
    return [
        {"role": role, "messages": messages[role], "tokens": size, "share": _share(size, total)}
        for role, size in tokens.most_common()
    ]


def _tools(measured: MeasuredTranscript) -> list[dict[str, Any]]:
    calls = Counter(call.name for message in measured.messages for call in message.tool_calls)
    tokens: Counter[str] = Counter(dict.fromkeys(calls, 0))
    for message, tool, size in zip(measured.messages, measured.tools, measured.tokens, strict=True):
        if message.role == "tool":
            tokens[tool or "(no call)"] += size
    return [{"tool": tool, "calls": calls[tool], "result_tokens": size} for tool, size in tokens.most_common()]


def _biggest(measured: MeasuredTranscript) -> list[dict[str, Any]]:
    places = sorted(range(len(measured.messages)), key=lambda place: (-measured.tokens[place], place))
    return [
        {
            "place": place,
            "id": measured.messages[place].id,
            "role": measured.messages[place].role,
            "tool": measured.tools[place],
            "tokens": measured.tokens[place],
            "first_line": screen.first_line(_text_or_arguments(measured.messages[place])),
        }
        for place in places[:_BIGGEST]
    ]


def _text_or_arguments(message: Message) -> str:
    """Return the text of a message; of one without text, the arguments of its tool calls."""
    return text_with_attachments(message) or " ".join(call.arguments for call in message.tool_calls)


def _show(inspection: _Inspection) -> None:
    window = inspection.window
    messages, turns = screen.quantity(window["messages"], "message"), screen.quantity(window["turns"], "turn")
    screen.line(f"{messages}, {turns}, model {window['model']}", style="bold")
    used, size = window["used_tokens"], window["max_context_tokens"]
    screen.line(f"window: {used:,} of {size:,} tokens ({screen.percentage(used, size)})")
    screen.line("limits: " + ", ".join(f"{name} {tokens:,}" for name, tokens in window["thresholds"].items()))
    tables = (
        ("tokens by part", inspection.parts),
        ("what a compaction keeps", inspection.kept),
        ("tokens by role", inspection.roles),
        ("tokens by tool", inspection.tools),
        ("biggest messages", inspection.biggest),
    )
    for title, rows in tables:
        if rows:
            screen.heading(title)
            shown = [_as_shown(row) for row in rows]
            screen.table([name.replace("_", " ") for name in shown[0]], [tuple(row.values()) for row in shown])


def _as_shown(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row for people: shares in percent, a tool beside the role, and a count beside what is counted."""
    shown = dict(row)
    if "share" in shown:
        shown["share"] = f"{shown['share']:.1%}"
    if count := shown.pop("count", None):
        shown["kept_by"] += f" ({count:,})"
    if "role" in shown and (tool := shown.pop("tool", None)):
        shown["role"] += f" {tool}"
    return shown
