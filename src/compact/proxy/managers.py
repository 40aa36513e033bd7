"""A manager for each model that is asked for, all on one store; a single one if a model or a window is set."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from compact.assembly.storage import build_store
from compact.config import CompactConfig
from compact.core.engine.events import EventSink
from compact.manager import CompactManager

# Chosen: more models than one provider's agents use. Names come from outside: a client that invents one for every
# request gets the manager of the settings.
_MOST_MODELS = 32


class Managers:
    """Managers by the name of the model, made when they are first needed."""

    def __init__(self, config: CompactConfig, on_event: EventSink | None = None) -> None:
        self._config, self._on_event = config, on_event
        self._is_set = bool({"model", "max_context_tokens"} & config.model_fields_set)
        self._store = build_store(config)
        self._lock = threading.Lock()
        self._managers: dict[str, CompactManager] = {}
        self._get(config.model)

    def for_model(self, model: str, window_tokens: int = 0) -> CompactManager:
        """Return the manager that knows the window of a model; `window_tokens` is the one that a request asks for."""
        name = f"{model}@{window_tokens}" if window_tokens else model
        with self._lock:
            is_known = name in self._managers
            may_be_added = bool(model) and not self._is_set and len(self._managers) < _MOST_MODELS
            return self._get(model, window_tokens) if is_known or may_be_added else self._get(self._config.model)

    @property
    def all(self) -> Mapping[str, CompactManager]:
        """Every manager that was made, by model; with `@` and the window, if requests asked for one."""
        return dict(self._managers)

    async def forget(self, session_id: str) -> None:
        """Remove a session from memory; the store has it."""
        for manager in self.all.values():
            await manager.aforget(session_id)

    def close(self) -> None:
        """Close every manager."""
        for manager in self._managers.values():
            manager.close()

    def _get(self, model: str, window_tokens: int = 0) -> CompactManager:
        name = f"{model}@{window_tokens}" if window_tokens else model
        if name not in self._managers:
            window = {"max_context_tokens": window_tokens} if window_tokens else {}
            config = self._config.model_copy(update={"model": model, **window})
            self._managers[name] = CompactManager(config, store=self._store, on_event=self._on_event)
        return self._managers[name]
