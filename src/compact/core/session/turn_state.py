"""What was added behind the log in the turn in hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from compact.core.audit.records import AddedMessage
from compact.core.plan.turn import TurnContext


@dataclass(frozen=True, slots=True)
class TurnState:
    """Rehydrated artifacts, and the answers of injectors that are asked once a turn."""

    context: TurnContext = field(default_factory=TurnContext)
    rehydrated: tuple[AddedMessage, ...] = ()
    injected_once: Mapping[str, tuple[AddedMessage, ...]] = field(default_factory=dict[str, tuple[AddedMessage, ...]])
