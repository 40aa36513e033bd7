"""How an agent gets to what left its prompt: by naming an artifact, or by asking for it.

rehydration     shows an artifact at the end of the prompt for a turn when the newest messages name it
search          finds entries of the log by id or by a question, within a number of tokens
semantic        finds entries by what they mean, if a model is at hand
packaged_model  a small embedding model out of a package
passage         chooses the part of a long entry that a question is about
tool            the tool by which an agent asks
phrase_finder   tells people where a phrase is, and which calls lacked it
"""

from compact.core.plan.turn import (
    Rehydration,
    RehydrationBlocked,
    RehydrationResult,
    RehydrationScope,
    RehydrationState,
    render_rehydrated,
)
from compact.recall.rehydration import RehydrationConfig, RehydrationInterceptor, create_rehydration_interceptor

__all__ = [
    "Rehydration",
    "RehydrationBlocked",
    "RehydrationConfig",
    "RehydrationInterceptor",
    "RehydrationResult",
    "RehydrationScope",
    "RehydrationState",
    "create_rehydration_interceptor",
    "render_rehydrated",
]
