"""What an operator asks first: how full is the window, what is in it, and why did it (not) compact."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from compact.core.engine.session import Decision, Session
from compact.core.plan.layers import KeepRules


@dataclass(frozen=True, slots=True)
class LayerStatus:
    """The messages and tokens of one layer of the prompt."""

    messages: int
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStatus:
    """A session as it stands."""

    session_id: str
    turn_number: int
    plan_version: int
    used_tokens: int
    max_context_tokens: int
    thresholds: Mapping[str, int]
    layers: Mapping[str, LayerStatus]
    messages_in_log: int
    actions: Mapping[str, int]
    decision: Decision | None

    @property
    def usage_pct(self) -> float:
        """Usage as a share of the window."""
        return self.used_tokens / self.max_context_tokens

    def __str__(self) -> str:
        lines = [
            f"session {self.session_id}, turn {self.turn_number}, plan version {self.plan_version}",
            f"window  {self.used_tokens:,} of {self.max_context_tokens:,} tokens ({self.usage_pct:.1%})",
            "limits  " + ", ".join(f"{name} {tokens:,}" for name, tokens in self.thresholds.items()),
        ]
        for name, layer in self.layers.items():
            lines.append(f"{name:<8}{layer.messages:,} messages, {layer.tokens:,} tokens")
        lines.append(
            "log     "
            + f"{self.messages_in_log:,} messages: "
            + ", ".join(f"{n:,} {a}" for a, n in self.actions.items())
        )
        if self.decision:
            lines.append(f"{'compacted' if self.decision.triggered else 'not compacted'}: {self.decision.reason}")
        return "\n".join(lines)


def status_of(session: Session, rules: KeepRules, *, used_tokens: int) -> SessionStatus:
    """Read a session's state off its prompt."""
    budget = session.budget
    if budget is None:
        raise ValueError("a session has a status once something was preflighted in it")
    sizes = {"pinned": [0, 0], "summary": [0, 0], "recent": [0, 0]}
    summary_ids = set(session.plan.summary.span) if session.plan.summary else set[str]()
    for slot, tokens in zip(session.prompt.slots, session.slot_tokens(), strict=True):
        is_summary = bool(summary_ids) and bool(slot.ids) and slot.ids[0] in summary_ids
        layer = sizes["summary" if is_summary else "pinned" if rules.pins(slot.message) else "recent"]
        layer[0] += 1
        layer[1] += tokens
    if session.injected:
        sizes["injected"] = [len(session.injected), session.injected_tokens]
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
        layers={name: LayerStatus(*size) for name, size in sizes.items()},
        messages_in_log=len(session.thread.log),
        actions={action.value: count for action, count in session.prompt.actions.items() if count},
        decision=session.decision,
    )
