"""The history of a recorded session as policies see it, call by call, with the size of each message."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Any

from compact.core.messages.entries import read_entry
from compact.core.messages.groups import Group, group_messages
from compact.core.messages.message import Message
from compact.core.messages.tokenizer import ProviderAwareTokenizer
from compact.measuring.recordings import Wire

SYSTEM_ROLES = ("system", "developer")


def call_places(messages: Sequence[Wire]) -> list[int]:
    """Return how many messages each model call had: all that came before a reply."""
    roles = [message["role"] for message in messages]
    return [end for end in range(1, len(roles)) if roles[end] == "assistant" != roles[end - 1]]


@dataclass(slots=True)
class MessageSizes:
    """Counts the tokens of messages, each once."""

    tokenizer: ProviderAwareTokenizer
    _by_look: dict[str, int] = field(default_factory=dict[str, int])
    _known: dict[int, int] = field(default_factory=dict[int, int])
    _held: list[Wire] = field(default_factory=list[Wire])

    def learn(self, messages: Sequence[Wire]) -> list[int]:
        """Return the sizes of messages that stay in memory: from now on they are known by their identity."""
        sizes = [self(message) for message in messages]
        self._known.update(zip(map(id, messages), sizes, strict=True))
        # An identity is taken again as soon as its message is gone.
        self._held.extend(messages)
        return sizes

    def __call__(self, message: Wire) -> int:
        known = self._known.get(id(message))
        if known is not None:
            return known
        look = json.dumps(message, sort_keys=True, default=repr)
        if look not in self._by_look:
            self._by_look[look] = self.tokenizer.count_message(read_entry(message, "message"))
        return self._by_look[look]


@dataclass(frozen=True)
class SessionHistory:
    """A recorded session in Chat Completions form, and what goes with each of its calls.

    `fixed_tokens` are those of the tool schemas, which every call sends before its messages.
    """

    id: str
    source: str
    messages: tuple[Wire, ...]
    sizes: MessageSizes
    tools: Sequence[Any] = ()
    fixed_tokens: int = 0

    @cached_property
    def calls(self) -> list[int]:
        """How many messages each call had."""
        return call_places(self.messages)

    @cached_property
    def tokens(self) -> list[int]:
        """The tokens of each message."""
        return self.sizes.learn(self.messages)

    @cached_property
    def tokens_before(self) -> list[int]:
        """The tokens of everything before each place, tool schemas included."""
        return list(accumulate(self.tokens, initial=self.fixed_tokens))

    @cached_property
    def entries(self) -> list[Message]:
        """The messages as the product reads them."""
        return [read_entry(message, f"message {number}") for number, message in enumerate(self.messages)]

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Which messages stay or go together."""
        return group_messages(self.entries)

    @cached_property
    def pinned(self) -> list[int]:
        """The places of system prompts."""
        return [place for place, message in enumerate(self.messages) if message["role"] in SYSTEM_ROLES]

    @property
    def largest_tokens(self) -> int:
        """The size of the largest prompt, if nothing is compacted."""
        return self.tokens_before[self.calls[-1]] if self.calls else self.fixed_tokens
