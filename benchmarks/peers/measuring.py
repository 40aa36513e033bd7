"""What each peer costs and keeps on recorded sessions, and whether its prompts are legal.

Each session has a window of its own: the trigger is at 30 % of its largest prompt, so that every session is compacted
several times, whatever its length. All peers have the same window and trigger.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fidelity.transcripts import MODEL, read_rows, transcript_files

from compact.core.messages.entries import read_entry
from compact.core.messages.legality import check_chat
from compact.core.plan.economics import USUAL_RATIOS
from compact.measuring.histories import MessageSizes, SessionHistory
from compact.measuring.needs import Commons
from compact.measuring.policies import Policy, PolicyLimits, PolicyPrompt, Prepare
from compact.measuring.recordings import recording_of
from compact.measuring.replay import replay_session
from compact.measuring.scores import mean
from compact.measuring.simulation import Checkpoint, find_checkpoints, kept_shares
from compact.tokens import get_tokenizer
from peers.registry import Peer

# Chosen: several compactions in each session; what is left of a window above the trigger is our own default.
TRIGGER_SHARE, TRIGGER_PCT = 0.3, 0.85
SHORTEST_TOKENS, LONGEST_TOKENS = 8_000, 60_000
# CPU seconds. Chosen: longer than anything but a peer whose time grows with the square of the history.
SECONDS_PER_SESSION = 15.0
MEASURES = ("recall", "linked", "user_text", "lines")
RESAMPLES = 2_000
_NEVER = float("inf")


class TooSlow(Exception):
    """A peer took more time than it has for a session."""


@dataclass(frozen=True, slots=True)
class PeerSession:
    """One peer on one session: shares from 0 to 1, cost relative to sending everything.

    `size` is that of the prompts in which shares were looked for, relative to the window.
    """

    session: str
    shares: dict[str, float | None]
    size: float
    constraints: int
    constraints_kept: int
    cost: float
    calls: int
    compactions: int
    illegal: int
    overflows: int
    failures: int
    ms_per_call: float


def load_sessions(folder: Path, per_source: int) -> list[SessionHistory]:
    """The longest sessions of each source that are neither short nor endless."""
    sizes = MessageSizes(get_tokenizer(MODEL, "auto"))
    chosen: list[SessionHistory] = []
    for path in transcript_files(folder):
        rows = read_rows(path)
        histories = [SessionHistory(row["id"], row["source"], tuple(row["messages"]), sizes) for row in rows]
        fitting = [one for one in histories if one.calls and SHORTEST_TOKENS <= one.largest_tokens <= LONGEST_TOKENS]
        chosen += sorted(fitting, key=lambda one: -one.largest_tokens)[:per_source]
    return chosen


def limits_of(history: SessionHistory) -> PolicyLimits:
    """The window of a session, and its trigger."""
    trigger = int(TRIGGER_SHARE * history.largest_tokens)
    return PolicyLimits(int(trigger / TRIGGER_PCT), trigger)


def measure_peers(
    histories: Sequence[SessionHistory],
    peers: Sequence[Peer],
    done: Callable[[str], None] = lambda what: None,
    seconds: float = SECONDS_PER_SESSION,
) -> dict[str, list[PeerSession]]:
    """Every peer on every session; a session that takes a peer too long is left out for it."""
    commons = Commons([recording_of(one.id, one.source, one.messages) for one in histories])
    results: dict[str, list[PeerSession]] = {peer.policy.name: [] for peer in peers}
    for history in histories:
        recording = recording_of(history.id, history.source, history.messages)
        points = find_checkpoints(history, recording, limits_of(history), commons)
        for peer in peers:
            done(f"{history.id}: {peer.policy.name}")
            try:
                results[peer.policy.name].append(measure_session(history, peer.policy, points, seconds))
            except TooSlow:
                continue
    return results


def measure_session(
    history: SessionHistory, policy: Policy, points: Sequence[Checkpoint], seconds: float = _NEVER
) -> PeerSession:
    """One policy on one session."""
    limits, illegal = limits_of(history), [0]
    checked = Policy(policy.name, policy.about, _watched(policy, illegal, time.process_time() + seconds))
    replayed = replay_session(history, checked, limits, keep=[point.end for point in points])
    kept, calls = kept_shares(history, replayed, points), replayed.calls
    whole = sum(_everything(history))
    looked_at = [calls[history.calls.index(point.end)].tokens for point in points]
    return PeerSession(
        session=history.id,
        shares={name: mean([getattr(one, name) for one in kept.scores], unit=1) for name in MEASURES},
        size=sum(looked_at) / max(1, len(looked_at)) / limits.window_tokens,
        constraints=kept.constraints,
        constraints_kept=kept.constraints_kept,
        cost=sum(call.cost(lambda tokens: USUAL_RATIOS) for call in calls) / whole,
        calls=len(calls),
        compactions=sum(call.is_changed for call in calls),
        illegal=illegal[0],
        overflows=sum(call.tokens > limits.window_tokens for call in calls),
        failures=sum(call.has_failed for call in calls),
        ms_per_call=1000 * sum(call.seconds for call in calls) / max(1, len(calls)),
    )


def _watched(policy: Policy, illegal: list[int], until: float) -> Callable[[SessionHistory, PolicyLimits], Prepare]:
    """The same policy; counts prompts that a provider would refuse, and stops one that takes too long."""

    def start(history: SessionHistory, limits: PolicyLimits) -> Prepare:
        prepare = policy.start(history, limits)

        def watched(end: int) -> PolicyPrompt:
            sent = prepare(end)
            if time.process_time() > until:
                raise TooSlow
            illegal[0] += bool(check_chat([read_entry(message, "prompt") for message in sent.messages]))
            return sent

        return watched

    return start


def _everything(history: SessionHistory) -> Iterable[float]:
    """What each call costs if everything is sent."""
    before = 0
    for end in history.calls:
        size = history.tokens_before[end]
        yield before * USUAL_RATIOS.cache_read + (size - before) * USUAL_RATIOS.cache_write
        before = size


def summarize_results(results: Sequence[PeerSession], seed: int = 7) -> dict[str, Any]:
    """Means over sessions with 95 % intervals, and sums."""
    columns: dict[str, list[float | None]] = {
        **{name: [one.shares[name] for one in results] for name in MEASURES},
        "cost": [one.cost for one in results],
        "size": [one.size for one in results],
    }
    calls = sum(one.calls for one in results)
    return {
        "sessions": len(results),
        **{name: interval([value for value in values if value is not None], seed) for name, values in columns.items()},
        "constraints": sum(one.constraints for one in results),
        "constraints_kept": sum(one.constraints_kept for one in results),
        "compactions_per_100_calls": round(100 * sum(one.compactions for one in results) / max(1, calls), 1),
        "calls": calls,
        "illegal": sum(one.illegal for one in results),
        "too_large": sum(one.overflows + one.failures for one in results),
    }


def interval(values: Sequence[float], seed: int) -> list[float] | None:
    """The mean, and the bounds of its 95 % interval by bootstrap over sessions."""
    if not values:
        return None
    chance = random.Random(seed)
    means = sorted(sum(chance.choices(values, k=len(values))) / len(values) for _ in range(RESAMPLES))
    low, high = means[int(0.025 * RESAMPLES)], means[int(0.975 * RESAMPLES)]
    return [round(value, 4) for value in (sum(values) / len(values), low, high)]
