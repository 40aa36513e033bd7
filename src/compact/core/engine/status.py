"""The status of a session: how full its window is, what is in it, and why it did or did not compact."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from compact.core.plan.parts import LAYERS, PromptPart
from compact.core.plan.regret import RegretCount, count_regrets
from compact.core.plurals import noun, quantity
from compact.core.session.decisions import TriggerDecision
from compact.core.session.session import Session
from compact.core.short_repr import short_repr


@dataclass(frozen=True, slots=True)
class PartStatus:
    """The messages and tokens of a part of the prompt, or of a layer."""

    messages: int
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStatus:
    """A session as it stands: how full its window is, what is in it, and why it did or did not compact.

    `manager.status(session_id)` returns it; `print(status)` shows it.

    Attributes:
        session_id: The conversation.
        turn_number: The turn it is in.
        plan_version: The version of the plan in force.
        used_tokens: What the prompt takes of the window, with all that is sent beside it.
        max_context_tokens: The window.
        thresholds: The tokens of `prefetch`, `trigger`, `target` and `ceiling`.
        parts: Messages and tokens of every part of the prompt that there is, in its order.
        messages_in_log: Everything that ever arrived.
        actions: How many messages of the log each action was applied to.
        decision: Whether the last call was compacted, and why.
        regrets: What compactions removed and the agent asked for again, counted.
        contents: The tokens of what was said, by part and by role or tool.
        trigger_reason: Why the trigger is where it is, if that is not plain.

    Example:
        >>> from compact import CompactConfig, CompactManager
        >>> from compact.testing import tool_run
        >>> manager = CompactManager(CompactConfig(max_context_tokens=8_000))
        >>> prompt = manager.preflight("chat-1", tool_run(60, words=200))
        >>> status = manager.status("chat-1")
        >>> status.thresholds["trigger"], status.decision.triggered
        (6500, True)
        >>> status.usage_pct < 0.7
        True
    """

    session_id: str
    turn_number: int
    plan_version: int
    used_tokens: int
    max_context_tokens: int
    thresholds: Mapping[str, int]
    parts: Mapping[str, PartStatus]
    messages_in_log: int
    actions: Mapping[str, int]
    decision: TriggerDecision | None
    regrets: tuple[RegretCount, ...] = ()
    contents: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, Mapping[str, int]])
    trigger_reason: str = ""
    __repr__ = short_repr

    @property
    def usage_pct(self) -> float:
        """Usage as a share of the window."""
        return self.used_tokens / self.max_context_tokens

    @property
    def layers(self) -> dict[str, PartStatus]:
        """The same by memory layer: pinned, summary, recent, and injected if there is any."""
        return {
            layer: PartStatus(sum(part.messages for part in there), sum(part.tokens for part in there))
            for layer, names in LAYERS.items()
            if (there := [self.parts[name] for name in names if name in self.parts]) or layer != "injected"
        }

    def to_markdown(self) -> str:
        """Return the status as Markdown: what a chat answers to `/compact_status`, and after a `/compact`.

        Example:
            >>> status.to_markdown().startswith("**Context**")
            True
        """
        return "\n".join(_markdown(self))

    def __str__(self) -> str:
        lines = [
            f"session {self.session_id}, turn {self.turn_number}, plan version {self.plan_version}",
            f"window  {self.used_tokens:,} of {self.max_context_tokens:,} tokens ({self.usage_pct:.1%})",
            "limits  " + ", ".join(f"{name} {tokens:,}" for name, tokens in self.thresholds.items()),
        ]
        if self.trigger_reason:
            lines.append(f"trigger {self.trigger_reason}")
        width = max(map(len, self.parts), default=0)
        for name, part in self.parts.items():
            tokens = f"{part.tokens:>9,} {noun(part.tokens, 'token')}"
            lines.append(f"{name:<{width}}  {tokens}, {quantity(part.messages, 'message')}")
        actions = ", ".join(f"{count:,} {action}" for action, count in self.actions.items())
        lines.append(f"log     {quantity(self.messages_in_log, 'message')}: {actions}")
        if self.regrets:
            missed = sum(count.total for count in self.regrets)
            lines.append(f"regret  {quantity(missed, 'removed message')} asked for again")
        if self.decision:
            lines.append(f"{'compacted' if self.decision.triggered else 'not compacted'}: {self.decision.reason}")
        return "\n".join(lines)


# Chosen: a bar that a narrow chat window shows in one line.
_BAR_CHARS = 20


def _markdown(status: SessionStatus) -> Iterator[str]:
    used, window = status.used_tokens, status.max_context_tokens
    filled = min(_BAR_CHARS, round(_BAR_CHARS * status.usage_pct))
    bar = "█" * filled + "░" * (_BAR_CHARS - filled)
    yield f"**Context** `{bar}` {used:,} of {window:,} tokens ({status.usage_pct:.0%})"
    yield ""
    yield "| part | tokens | messages | of which |"
    yield "|---|--:|--:|---|"
    for name, part in status.parts.items():
        sources = _sources(status.contents.get(name, {}))
        yield f"| {name.replace('_', ' ')} | {part.tokens:,} | {part.messages or '–'} | {sources} |"
    yield f"| free | {max(0, window - used):,} | – | compacted at {status.thresholds['trigger']:,} |"
    yield ""
    actions = ", ".join(f"{count:,} {_DONE.get(action, action)}" for action, count in status.actions.items())
    messages = quantity(status.messages_in_log, "message")
    yield f"{messages} in the log: {actions or 'none'}. Plan version {status.plan_version}."
    if status.decision:
        outcome = "compacted" if status.decision.triggered else "not compacted"
        yield f"Last call: {outcome}, {_cell(status.decision.reason)}."


_DONE = {
    "include": "in the prompt",
    "clear": "cleared",
    "summarize": "summarised",
    "externalize": "externalised",
    "drop": "dropped",
}


def _sources(sources: Mapping[str, int]) -> str:
    """Return what a part is made of, the largest first: `read_file` 61,000, `bash` 22,000."""
    return ", ".join(f"`{_cell(source)}` {tokens:,}" for source, tokens in sources.items()) or "–"


def _cell(text: str) -> str:
    """Return a text that stays inside its cell: a tool may have any name."""
    return " ".join(text.split()).replace("|", "\\|").replace("`", "'")


def status_of(session: Session, *, used_tokens: int) -> SessionStatus:
    """Return the status of a session that was preflighted at least once."""
    budget = session.budget
    if budget is None:
        raise ValueError("a session has a status once something was preflighted in it")
    tokens, messages = session.tokens_by_part(), Counter(session.prompt.slot_parts)
    messages[PromptPart.REHYDRATED] = len(session.turn.rehydrated)
    messages[PromptPart.INJECTED] = len(session.injected)
    return SessionStatus(
        session_id=session.session_id,
        turn_number=session.turn_number,
        plan_version=session.plan.version,
        used_tokens=used_tokens,
        max_context_tokens=budget.max_context_tokens,
        thresholds={
            "prefetch": budget.prefetch_tokens,
            "trigger": budget.trigger_tokens,
            "target": budget.target_tokens,
            "ceiling": budget.ceiling_tokens,
        },
        parts={part.value: PartStatus(messages[part], tokens[part]) for part in PromptPart if tokens.get(part)},
        messages_in_log=len(session.log.entries),
        actions={action.value: count for action, count in session.prompt.rendered.actions.items() if count},
        decision=session.decision,
        regrets=count_regrets(session.regrets),
        contents=session.prompt.contents,
        trigger_reason=budget.trigger_reason,
    )
