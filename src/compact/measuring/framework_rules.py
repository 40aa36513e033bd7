"""The defaults of agent frameworks, by the rules that their code follows; no framework is imported.

`tests/benchmarks/test_peers.py` holds each rule against the framework's own code. Where a framework asks a model for a
summary, our offline summariser stands in for it: see `stand_in`.
"""

from __future__ import annotations

from collections.abc import Sequence

from compact.core.messages.entries import read_entry
from compact.measuring.histories import SYSTEM_ROLES, SessionHistory
from compact.measuring.policies import Policy, PolicyLimits, PolicyPrompt, Prepare, by_name
from compact.measuring.recordings import Wire
from compact.measuring.stand_in import summarize_offline

# LangChain's SummarizationMiddleware: the messages it keeps, and the tokens of older ones that its model reads.
_LANGCHAIN_KEPT_MESSAGES = 20
_LANGCHAIN_READ_TOKENS = 4_000
_LANGCHAIN_PREFIX = "Here is a summary of the conversation to date:\n\n"
# Strands' SlidingWindowConversationManager.
_STRANDS_MESSAGES = 40


class _SummarizeAndKeepNewest:
    """LangChain's SummarizationMiddleware: at the trigger one summary replaces all but the newest messages."""

    def __init__(self, history: SessionHistory, limits: PolicyLimits) -> None:
        self._history, self._limits = history, limits
        self._summary: list[Wire] = []
        self._first = 0

    def __call__(self, end: int) -> PolicyPrompt:
        history = self._history
        pinned = [history.messages[place] for place in history.pinned if place < end]
        places = [n for n in range(self._first, end) if history.messages[n]["role"] not in SYSTEM_ROLES]
        messages = [*self._summary, *(history.messages[place] for place in places)]
        tokens = history.fixed_tokens + sum(map(history.sizes, [*pinned, *messages]))
        cut = _before_call_of_result(messages, len(messages) - _LANGCHAIN_KEPT_MESSAGES)
        if tokens < self._limits.trigger_tokens or cut <= len(self._summary):
            return PolicyPrompt([*pinned, *messages])
        read, text = self._summarize(messages[:cut])
        self._first = places[cut - len(self._summary)]
        self._summary = [{"role": "user", "content": _LANGCHAIN_PREFIX + text}]
        sent = [*pinned, *self._summary, *messages[cut:]]
        return PolicyPrompt(sent, read, history.sizes(self._summary[0]))

    def _summarize(self, messages: Sequence[Wire]) -> tuple[int, str]:
        """Return how many tokens the model reads, the newest of those that go, and the summary of them."""
        sizes = self._history.sizes
        read, first = 0, len(messages)
        while first and read + sizes(messages[first - 1]) <= _LANGCHAIN_READ_TOKENS:
            first -= 1
            read += sizes(messages[first])
        entries = [read_entry(message, "message") for message in messages[first:] or messages[-1:]]
        return read, summarize_offline(entries, sizes.tokenizer.count_text)


def _before_call_of_result(messages: Sequence[Wire], cut: int) -> int:
    """Return the cut moved back to the call whose results it would split off."""
    cut = max(0, cut)
    while 0 < cut < len(messages) and messages[cut]["role"] == "tool":
        cut -= 1
    return cut


class _KeepNewestMessages:
    """Strands' SlidingWindowConversationManager: after each turn of the agent, the newest 40 messages stay.

    What it does when a provider refuses a prompt as too long is not part of the rule.
    """

    def __init__(self, history: SessionHistory, limits: PolicyLimits) -> None:
        self._history = history
        self._units = _strands_messages(history)
        self._first = 0

    def __call__(self, end: int) -> PolicyPrompt:
        history = self._history
        if history.messages[end - 1]["role"] == "user":
            self._first = self._trimmed(end)
        pinned = [history.messages[place] for place in history.pinned if place < end]
        kept = [n for n in range(self._first, end) if history.messages[n]["role"] not in SYSTEM_ROLES]
        return PolicyPrompt([*pinned, *(history.messages[place] for place in kept)])

    def _trimmed(self, end: int) -> int:
        """Return where the messages begin that stay: with what a person said, else with a call and its results."""
        # The message that starts a turn is appended after the turn before was trimmed.
        units = [unit for unit in self._units if self._first <= unit[0] < end - 1]
        if len(units) <= _STRANDS_MESSAGES:
            return self._first
        newest = units[-_STRANDS_MESSAGES:]
        roles = [self._history.messages[unit[0]]["role"] for unit in newest]
        starts = [unit[0] for unit, role in zip(newest, roles, strict=True) if role == "user"]
        pairs = [newest[n][0] for n in range(len(newest) - 1) if roles[n : n + 2] == ["assistant", "tool"]]
        return (starts or pairs or [self._first])[0]


def _strands_messages(history: SessionHistory) -> list[list[int]]:
    """Return the places of each message as Strands counts: all results of one call are a single message."""
    units: list[list[int]] = []
    for place, message in enumerate(history.messages):
        if message["role"] in SYSTEM_ROLES:
            continue
        if message["role"] == "tool" and units and history.messages[units[-1][0]]["role"] == "tool":
            units[-1].append(place)
        else:
            units.append([place])
    return units


def _start_langchain(history: SessionHistory, limits: PolicyLimits) -> Prepare:
    return _SummarizeAndKeepNewest(history, limits)


def _start_strands(history: SessionHistory, limits: PolicyLimits) -> Prepare:
    return _KeepNewestMessages(history, limits)


FRAMEWORK_POLICIES = by_name(
    (
        Policy(
            "langchain", "LangChain's SummarizationMiddleware, as a rule: a summary and 20 messages", _start_langchain
        ),
        Policy(
            "strands", "Strands' sliding window, as a rule: the newest 40 messages stay after a turn", _start_strands
        ),
    )
)
