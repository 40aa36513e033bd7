"""The sockets: everything that can be plugged in, on one page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from compact.core.messages import Message

if TYPE_CHECKING:
    from compact.core.coordinator import CompactionProposal, PlanningContext
    from compact.core.events import CompactionEvent
    from compact.core.legality import Repair, Violation
    from compact.core.messages import Slot
    from compact.core.summary import StructuredSummary, SummaryRequest
    from compact.core.turn import Rehydrated, TurnContext


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
        """Tokens of a bare text."""
        ...

    def count_message(self, message: Message) -> int:
        """Tokens of a message in a prompt: content, tool calls, images and overhead."""
        ...

    def count_tools(self, tools: Sequence[Mapping[str, Any]]) -> int:
        """Tokens of tool schemas sent along with a prompt."""
        ...


class CompactionStrategy(Protocol):
    """Proposes plan records, best first; pure. The coordinator takes as many as it needs."""

    @property
    def name(self) -> str:
        """The word that stands in the plan for who decided."""
        ...

    def propose(self, context: PlanningContext) -> Iterable[CompactionProposal]:
        """Yield proposals for the messages this strategy may touch."""
        ...


# A summariser may answer at once or later; the doors know how to wait for either.
Summarizer: TypeAlias = "Callable[[SummaryRequest], StructuredSummary | Awaitable[StructuredSummary]]"


class Rehydrator(Protocol):
    """Brings back artifacts that the newest messages name."""

    def __call__(
        self, session_id: str, messages: Sequence[Message], turn: TurnContext, *, budget_tokens: int
    ) -> Rehydrated:
        """What to show at the end of the prompt, within the room there is."""
        ...


class EntryForm(Protocol):
    """How one wire form is read, written and kept legal."""

    @property
    def name(self) -> str:
        """``chat``, ``responses``, …"""
        ...

    def read(self, item: object, place: str) -> Message:
        """Turn one entry of a caller's list into a message, or raise InvalidHistory naming `place`."""
        ...

    def write(self, message: Message, like: object) -> object:
        """Turn a message we made or changed into the kind of thing that `like` is."""
        ...

    def check(self, messages: Sequence[Message]) -> tuple[Violation, ...]:
        """Everything the provider would reject."""
        ...

    def repair(self, slots: Sequence[Slot]) -> tuple[tuple[Slot, ...], tuple[Repair, ...]]:
        """The nearest legal prompt, and what was changed to get there."""
        ...


class StorageAdapter(Protocol):
    """Keeps transcripts, summaries and events of sessions; a save returns the path or key that holds it."""

    def save_transcript(self, session_id: str, transcript: Sequence[Message], step: int) -> str:
        """Keep the whole history as it was before compaction number `step`."""
        ...

    def save_summary(self, session_id: str, summary: Message, step: int) -> str:
        """Keep the summary that compaction number `step` made."""
        ...

    def save_event(self, session_id: str, event: Mapping[str, Any]) -> None:
        """Keep one event."""
        ...


EventSink: TypeAlias = "Callable[[CompactionEvent], None]"
