"""`compact inspect`: what a transcript is made of, and how full the window is."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from compact.cli import screen
from compact.cli.measured import SESSION, Measured, measure
from compact.cli.options import AsJson, ConfigFile, File, Index, Model, Window
from compact.cli.settings import load_config
from compact.cli.transcripts import read_transcript

if TYPE_CHECKING:
    from compact.config import CompactConfig
    from compact.core.log.messages import Message

_BIGGEST = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class _Anatomy:
    """Everything that is shown, as plain data; each list is one table."""

    window: dict[str, Any]
    layers: list[dict[str, Any]]
    roles: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    biggest: list[dict[str, Any]]


def inspect(
    file: File,
    index: Index = 0,
    model: Model = None,
    window: Window = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Show what a transcript is made of."""
    settings = load_config(config, model=model, window=window)
    messages = read_transcript(file, index)
    with screen.working(f"counting {len(messages):,} messages"):
        measured = measure(settings, messages)
        anatomy = _anatomy(measured, settings)
    screen.warn_about(measured.events)
    if as_json:
        tables = {"layers": anatomy.layers, "roles": anatomy.roles, "tools": anatomy.tools, "biggest": anatomy.biggest}
        screen.write_json({**anatomy.window, **tables})
    else:
        _show(anatomy)


def _anatomy(measured: Measured, settings: CompactConfig) -> _Anatomy:
    return _Anatomy(
        window=_window(measured, settings),
        layers=_layers(measured, settings),
        roles=_roles(measured),
        tools=_tools(measured),
        biggest=_biggest(measured),
    )


def _window(measured: Measured, settings: CompactConfig) -> dict[str, Any]:
    status = measured.manager.status(SESSION)
    return {
        "model": settings.model,
        "messages": len(measured.messages),
        "turns": status.turn_number,
        "used_tokens": status.used_tokens,
        "max_context_tokens": status.max_context_tokens,
        "usage_pct": round(status.usage_pct, 4),
        "thresholds": dict(status.thresholds),
    }


def _layers(measured: Measured, settings: CompactConfig) -> list[dict[str, Any]]:
    from compact.assembly import build_rules
    from compact.core.log.groups import group_messages
    from compact.core.plan.layers import partition

    rules = build_rules(settings)
    layers = partition(measured.messages, group_messages(measured.messages), rules)
    named = {
        "pinned": layers.pinned,
        f"recent pairs ({layers.recent_turns})": layers.recent,
        f"recent tool groups ({layers.tool_pairs})": layers.tool_io,
        "remainder": layers.remainder,
    }
    return [
        {"layer": name, "messages": len(places), "tokens": sum(measured.tokens[place] for place in places)}
        for name, places in named.items()
    ]


def _roles(measured: Measured) -> list[dict[str, Any]]:
    messages: Counter[str] = Counter()
    tokens: Counter[str] = Counter()
    for message, size in zip(measured.messages, measured.tokens, strict=True):
        messages[message.role] += 1
        tokens[message.role] += size
    total = sum(measured.tokens)
    return [
        {"role": role, "messages": messages[role], "tokens": size, "share": screen.share(size, total)}
        for role, size in tokens.most_common()
    ]


def _tools(measured: Measured) -> list[dict[str, Any]]:
    calls = Counter(call.name for message in measured.messages for call in message.tool_calls)
    tokens: Counter[str] = Counter(dict.fromkeys(calls, 0))
    for message, tool, size in zip(measured.messages, measured.tools, measured.tokens, strict=True):
        if message.role == "tool":
            tokens[tool or "(no call)"] += size
    return [{"tool": tool, "calls": calls[tool], "result_tokens": size} for tool, size in tokens.most_common()]


def _biggest(measured: Measured) -> list[dict[str, Any]]:
    places = sorted(range(len(measured.messages)), key=lambda place: (-measured.tokens[place], place))
    return [
        {
            "place": place,
            "id": measured.messages[place].id,
            "role": measured.label(place),
            "tokens": measured.tokens[place],
            "first_line": screen.first_line(_says(measured.messages[place])),
        }
        for place in places[:_BIGGEST]
    ]


def _says(message: Message) -> str:
    """The text of a message, or what it calls tools with."""
    return message.text or " ".join(call.arguments for call in message.tool_calls)


def _show(anatomy: _Anatomy) -> None:
    window = anatomy.window
    messages, turns = screen.counted(window["messages"], "message"), screen.counted(window["turns"], "turn")
    screen.line(f"{messages}, {turns}, model {window['model']}", style="bold")
    used, size = window["used_tokens"], window["max_context_tokens"]
    screen.line(f"window: {used:,} of {size:,} tokens ({screen.share(used, size)})")
    screen.line("limits: " + ", ".join(f"{name} {tokens:,}" for name, tokens in window["thresholds"].items()))
    tables = (
        ("layers", anatomy.layers),
        ("tokens by role", anatomy.roles),
        ("tokens by tool", anatomy.tools),
        ("biggest messages", anatomy.biggest),
    )
    for title, rows in tables:
        if rows:
            screen.heading(title)
            screen.table([name.replace("_", " ") for name in rows[0]], [tuple(row.values()) for row in rows])
