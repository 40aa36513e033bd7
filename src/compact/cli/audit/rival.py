"""What Compact keeps of the same prompt in the same room: its own compaction, by code, without a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from compact.cli.settings import in_memory, without_prefetch
from compact.core.plurals import quantity

if TYPE_CHECKING:
    from compact.config import CompactConfig

_SESSION = "audit"
# Chosen: the prompt must fit the window that the engine is told; the room is what decides.
_WINDOW_SLACK = 20_000


def compacted_by_us(
    prompt: Sequence[Any], *, room: int, tokens: int, settings: CompactConfig
) -> tuple[list[Any] | None, str]:
    """Return the prompt after a compaction into so many tokens; None, and why, if what must stay does not fit."""
    from compact.core.errors import CompactError
    from compact.manager import CompactManager

    window = max(settings.max_context_tokens or 0, tokens + _WINDOW_SLACK)
    own = without_prefetch(in_memory(settings)).model_copy(update={"max_context_tokens": window})
    with CompactManager(own) as manager:
        try:
            prompt_after = list(manager.manual_compact(_SESSION, prompt, target_tokens=room, dialect="chat"))
        except CompactError as error:
            return None, error.message.partition("\n")[0]
    return (prompt_after, "") if prompt_after else (None, f"{quantity(room, 'token')} do not hold a prompt")
