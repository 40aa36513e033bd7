"""Replays sessions under several policies, and adds up what each costs and keeps.

What a policy keeps is looked at in a few calls of each session that reaches the trigger: the prompt of the call is held
against what the agent said from there on. All policies are looked at in the same calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from compact.assembly.rules import build_constraints
from compact.measuring.histories import SYSTEM_ROLES, SessionHistory
from compact.measuring.needs import Commons, SessionNeeds, needs_of
from compact.measuring.policies import Policy, PolicyLimits
from compact.measuring.recordings import Recording, Wire, recording_of, text_of
from compact.measuring.replay import PriceOf, Replayed, ReplayedCall, replay_session
from compact.measuring.scores import Scores, mean, score

# Chosen: finding what a future needs takes longer than the replay.
CHECKPOINTS = 4
# Reports the session and the policy that come next.
Progress = Callable[[str, str], None]


def _quiet(session: str, policy: str) -> None:
    """Report nothing."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A call, by the messages it had: what the agent needed from there on, and the constraints that held."""

    end: int
    needs: SessionNeeds
    constraints: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KeptShares:
    """What the prompts of a policy held in the calls that were looked at; None where there was nothing to keep."""

    scores: tuple[Scores, ...]
    constraints: int
    constraints_kept: int


@dataclass(frozen=True, slots=True)
class SessionResult:
    """One session under one policy."""

    session: str
    policy: str
    calls: tuple[ReplayedCall, ...]
    kept: KeptShares
    cost: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyResult:
    """What a policy came to over all sessions; shares are from 0 to 1.

    `overflows` are prompts above the window, which a provider refuses. `compactions` are calls whose prompt does not
    begin with the one before it, so that the cache is lost from there on. Cost is that of input and of summaries.
    """

    policy: str
    about: str
    sessions: int
    calls: int
    input_tokens: int
    cached_tokens: int
    cost: float
    compactions: int
    largest_prompt_tokens: int
    overflows: int
    failures: int
    recall: float | None
    linked: float | None
    user_text: float | None
    lines: float | None
    constraints: int
    constraints_kept: int
    seconds: float
    slowest_seconds: float

    @property
    def fits(self) -> bool:
        """True if every prompt fits the window."""
        return not self.overflows and not self.failures

    @property
    def fidelity(self) -> float | None:
        """The mean of the four shares that there are."""
        return mean([self.recall, self.linked, self.user_text, self.lines], unit=1)

    def to_dict(self) -> dict[str, Any]:
        """Return it as data."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True, slots=True)
class Simulation:
    """All results, by policy and by session, and the limits that they share."""

    limits: PolicyLimits
    policies: tuple[PolicyResult, ...]
    sessions: tuple[SessionResult, ...]
    reaching: int
    currency: str

    def of(self, policy: str) -> PolicyResult | None:
        """Return the result of a policy, if it was simulated."""
        return next((result for result in self.policies if result.policy == policy), None)


def simulate(
    histories: Sequence[SessionHistory],
    policies: Sequence[Policy],
    limits: PolicyLimits,
    *,
    price_of: PriceOf,
    currency: str,
    progress: Progress = _quiet,
) -> Simulation:
    """Replay every session under every policy, and score what each keeps."""
    recordings = [recording_of(history.id, history.source, history.messages) for history in histories]
    commons = Commons(recordings)
    results: list[SessionResult] = []
    reaching = 0
    for history, recording in zip(histories, recordings, strict=True):
        progress(history.id, "what the agent needed later")
        checkpoints = find_checkpoints(history, recording, limits, commons)
        reaching += bool(checkpoints)
        for policy in policies:
            progress(history.id, policy.name)
            replayed = replay_session(history, policy, limits, keep=[point.end for point in checkpoints])
            kept = kept_shares(history, replayed, checkpoints)
            cost = sum(call.cost(price_of) for call in replayed.calls)
            results.append(SessionResult(history.id, policy.name, replayed.calls, kept, cost))
    added = tuple(_add_up(policy, [one for one in results if one.policy == policy.name], limits) for policy in policies)
    return Simulation(limits, added, tuple(results), reaching, currency)


def find_checkpoints(
    history: SessionHistory, recording: Recording, limits: PolicyLimits, commons: Commons
) -> tuple[Checkpoint, ...]:
    """Return a few calls of a session that come after it has reached the trigger, evenly apart."""
    late = [end for end in history.calls if history.tokens_before[end] >= limits.trigger_tokens]
    return tuple(_checkpoint(history, recording, end, commons) for end in evenly(late, CHECKPOINTS))


def evenly(places: Sequence[int], most: int) -> list[int]:
    """Return at most so many places, the first among them, evenly apart."""
    step = len(places) / most
    return list(places) if step <= 1 else [places[int(number * step)] for number in range(most)]


def _checkpoint(history: SessionHistory, recording: Recording, end: int, commons: Commons) -> Checkpoint:
    spoken = [place for place, message in enumerate(history.messages) if message["role"] not in SYSTEM_ROLES]
    cut = sum(place < end for place in spoken)
    counts = [history.tokens[place] for place in spoken]
    needs = needs_of(history.id, recording, recording.messages[cut:], cut, counts, commons)
    standing = build_constraints().standing(history.entries[:end])
    return Checkpoint(end, needs, tuple(constraint.text for constraint in standing))


def kept_shares(history: SessionHistory, replayed: Replayed, checkpoints: Sequence[Checkpoint]) -> KeptShares:
    """Score the prompts of the checkpoints; the system prompt does not count."""
    scores: list[Scores] = []
    said = held = 0
    for point in checkpoints:
        kept = text_of(_without_pinned(replayed.prompts[point.end], history))
        words = " ".join(kept.split())
        scores.append(score(point.needs, kept))
        said += len(point.constraints)
        held += sum(" ".join(text.split()) in words for text in point.constraints)
    return KeptShares(tuple(scores), said, held)


def _without_pinned(prompt: Sequence[Wire], history: SessionHistory) -> list[Wire]:
    pinned = [history.messages[place] for place in history.pinned]
    return [message for message in prompt if message not in pinned]


def _add_up(policy: Policy, results: Sequence[SessionResult], limits: PolicyLimits) -> PolicyResult:
    calls = [call for result in results for call in result.calls]
    shares: Mapping[str, float | None] = {
        name: mean([mean([getattr(one, name) for one in result.kept.scores], unit=1) for result in results], unit=1)
        for name in ("recall", "linked", "user_text", "lines")
    }
    return PolicyResult(
        policy=policy.name,
        about=policy.about,
        sessions=len(results),
        calls=len(calls),
        input_tokens=sum(call.tokens for call in calls),
        cached_tokens=sum(call.read_tokens for call in calls),
        cost=sum(result.cost for result in results),
        compactions=sum(call.is_changed for call in calls),
        largest_prompt_tokens=max((call.tokens for call in calls), default=0),
        overflows=sum(call.tokens > limits.window_tokens for call in calls),
        failures=sum(call.has_failed for call in calls),
        recall=shares["recall"],
        linked=shares["linked"],
        user_text=shares["user_text"],
        lines=shares["lines"],
        constraints=sum(result.kept.constraints for result in results),
        constraints_kept=sum(result.kept.constraints_kept for result in results),
        seconds=sum(call.seconds for call in calls),
        slowest_seconds=max((call.seconds for call in calls), default=0.0),
    )
