"""The model that a request of LangChain goes to: its name, and the tokens that it asks for its answer.

Chat models of all packages keep both as attributes, under a few names; what is bound to a model or set for one request
goes before them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from compact.adapters.support import is_mapping, litellm_limit, output_limit

_MODEL_NAMES = ("model", "model_name", "model_id")
_LIMITS = ("max_completion_tokens", "max_tokens", "max_output_tokens", "num_predict")
# The host decides on the window, and the name says nothing of it.
_HOSTS: Mapping[str, str] = {"chat-ollama": "ollama", "azure-openai-chat": "azure"}


@dataclass(frozen=True, slots=True)
class CalledModel:
    """A model's name, empty if it does not tell, and the most tokens of its answer, 0 if there is no limit."""

    name: str
    output_tokens: int


def called_model(model: Any, settings: Mapping[str, Any] | None = None) -> CalledModel:
    """Return what a chat model, bound to arguments or not, will send with these settings of one request."""
    given: dict[str, Any] = dict(settings or {})
    while is_mapping(getattr(model, "kwargs", None)) and hasattr(model, "bound"):
        given = {**model.kwargs, **given}
        model = model.bound
    own = {name: getattr(model, name, None) for name in _LIMITS}
    extra = getattr(model, "model_kwargs", None)
    name, limit = _name(model, given), output_limit(given, extra if is_mapping(extra) else None, own)
    return CalledModel(name, limit or litellm_limit(model, name))


def _name(model: Any, given: Mapping[str, Any]) -> str:
    names = (given.get("model"), *(getattr(model, name, None) for name in _MODEL_NAMES))
    name = next((name for name in names if isinstance(name, str) and name), "")
    host = _HOSTS.get(str(getattr(model, "_llm_type", "")), "")
    if not name and host == "azure":
        name = str(getattr(model, "deployment_name", None) or "")
    return f"{host}/{name}" if name and host else name
