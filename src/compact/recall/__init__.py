"""How what left the prompt comes back."""

from compact.recall.rehydration import (
    Rehydration,
    RehydrationBlocked,
    RehydrationConfig,
    RehydrationInterceptor,
    RehydrationResult,
    RehydrationState,
    create_rehydration_interceptor,
    render_rehydrated,
)

__all__ = [
    "Rehydration",
    "RehydrationBlocked",
    "RehydrationConfig",
    "RehydrationInterceptor",
    "RehydrationResult",
    "RehydrationState",
    "create_rehydration_interceptor",
    "render_rehydrated",
]
