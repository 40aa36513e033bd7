"""Put an engine together from a configuration: the one place that chooses plug-ins.

engines     the engine itself: what the caller brings, and everything else
rules       what decides which messages leave: rules for what stays, strategies
summaries   what writes summaries: code or a model
recall      what finds again what left: rehydration, search by meaning
storage     what is written to: store, events, archive
budget      the budget of a model's window
prices      what prices compactions
prefetch    what has summaries written before they are needed
"""

from __future__ import annotations

from typing import Any

from compact.core.former_names import former_name


def __getattr__(name: str) -> Any:
    """Return a name of the module that this room was once."""
    return former_name(__name__, name)
