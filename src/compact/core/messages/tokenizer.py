"""The socket for token counters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from compact.core.messages.message import Message


class ProviderAwareTokenizer(Protocol):
    """Counts tokens the way a provider does, wire overhead included."""

    @property
    def name(self) -> str:
        """What counts, for people: ``o200k_base``, ``simple``."""
        ...

    @property
    def is_exact(self) -> bool:
        """True if text counts equal the provider's."""
        ...

    def count_text(self, text: str) -> int:
        """Return the tokens of a bare text."""
        ...

    def count_message(self, message: Message) -> int:
        """Return the tokens of a message in a prompt: content, tool calls, images and overhead."""
        ...

    def count_tools(self, tools: Sequence[Mapping[str, Any]]) -> int:
        """Return the tokens of tool schemas sent along with a prompt."""
        ...
