"""Policies: given the history of a call, the prompt that is sent. Those here need no framework.

A policy is started once for each session, because some remember what they did before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from compact.config import CompactConfig
from compact.manager import CompactManager
from compact.measuring.histories import SessionHistory
from compact.measuring.recordings import Wire

KEPT_RESULTS = 3
CLEARED = "[cleared]"
_SESSION = "simulated"


@dataclass(frozen=True, slots=True)
class PolicyPrompt:
    """The messages of a call, and what a model read and wrote to summarise for it."""

    messages: list[Wire]
    summary_input_tokens: int = 0
    summary_output_tokens: int = 0


# From the number of messages that a call has, its prompt.
Prepare = Callable[[int], PolicyPrompt]


@dataclass(frozen=True, slots=True)
class PolicyLimits:
    """The window, and the size from which a policy acts."""

    window_tokens: int
    trigger_tokens: int


@dataclass(frozen=True, slots=True)
class Policy:
    """A way to keep prompts small: its name, what it does in a few words, and how it starts with a session."""

    name: str
    about: str
    start: Callable[[SessionHistory, PolicyLimits], Prepare]


def send_everything(history: SessionHistory, limits: PolicyLimits) -> Prepare:
    """Compact nothing."""
    return lambda end: PolicyPrompt(list(history.messages[:end]))


def slide_window(history: SessionHistory, limits: PolicyLimits) -> Prepare:
    """Send at every call the newest messages below the trigger; a call and its results stay together."""

    def prepare(end: int) -> PolicyPrompt:
        if history.tokens_before[end] < limits.trigger_tokens:
            return PolicyPrompt(list(history.messages[:end]))
        kept = {place for place in history.pinned if place < end}
        room = limits.trigger_tokens - history.fixed_tokens - sum(history.tokens[place] for place in kept)
        for group in reversed(history.groups):
            places = [place for place in group.indices if place < end and place not in kept]
            room -= sum(history.tokens[place] for place in places)
            if room < 0:
                break
            kept.update(places)
        return PolicyPrompt([history.messages[place] for place in sorted(kept)])

    return prepare


def clear_results(history: SessionHistory, limits: PolicyLimits) -> Prepare:
    """Replace, from the trigger on, all tool results but the newest few by a stub, at every call."""
    results = [place for place, message in enumerate(history.messages) if message["role"] == "tool"]
    stubs = {place: {**history.messages[place], "content": CLEARED} for place in results}
    history.sizes.learn(list(stubs.values()))

    def prepare(end: int) -> PolicyPrompt:
        if history.tokens_before[end] < limits.trigger_tokens:
            return PolicyPrompt(list(history.messages[:end]))
        old = set([place for place in results if place < end][:-KEPT_RESULTS])
        return PolicyPrompt([stubs[n] if n in old else message for n, message in enumerate(history.messages[:end])])

    return prepare


def clear_results_in_batches(history: SessionHistory, limits: PolicyLimits) -> Prepare:
    """Do the same, but only when the prompt has reached the trigger again."""
    results = [place for place, message in enumerate(history.messages) if message["role"] == "tool"]
    stubs = {place: {**history.messages[place], "content": CLEARED} for place in results}
    history.sizes.learn(list(stubs.values()))
    cleared: set[int] = set()

    def render(end: int) -> list[Wire]:
        return [stubs[n] if n in cleared else message for n, message in enumerate(history.messages[:end])]

    def prepare(end: int) -> PolicyPrompt:
        if history.fixed_tokens + sum(map(history.sizes, render(end))) >= limits.trigger_tokens:
            cleared.update([place for place in results if place < end][:-KEPT_RESULTS])
        return PolicyPrompt(render(end))

    return prepare


def compact_policy(name: str, config: CompactConfig, *, about: str = "Compact") -> Policy:
    """Return a policy that runs a manager with these settings; nothing may leave the process by them.

    The window and the trigger are those of its own settings.
    """

    def start(history: SessionHistory, limits: PolicyLimits) -> Prepare:
        manager = CompactManager(config)

        def prepare(end: int) -> PolicyPrompt:
            sent = manager.preflight(_SESSION, list(history.messages[:end]), tools=history.tools)
            return PolicyPrompt(sent)

        return prepare

    return Policy(name, about, start)


def by_name(policies: Iterable[Policy]) -> dict[str, Policy]:
    """Return policies by their names."""
    return {policy.name: policy for policy in policies}


PLAIN_POLICIES = by_name(
    (
        Policy("none", "sends everything", send_everything),
        Policy("window", "the newest messages below the trigger, at every call", slide_window),
        Policy("clear", f"clears tool results but the newest {KEPT_RESULTS}, at every call", clear_results),
        Policy("clear-batched", "does the same whenever the trigger is reached again", clear_results_in_batches),
    )
)
