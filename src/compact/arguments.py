"""What callers pass, checked before anything is done with it: not every caller has a type checker."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import wraps
from numbers import Real
from typing import Any, ParamSpec, TypeAlias, cast

from compact.config import CompactConfig
from compact.core.errors import ConfigError, InvalidHistory
from compact.dialects.dialect import Dialect

Tools: TypeAlias = Sequence[Mapping[str, Any]]
P = ParamSpec("P")
# Chosen: a name or a number; a whole section is none of an error's business.
_SHOWN_CHARS = 60


@dataclass(frozen=True, slots=True)
class CallOptions:
    """What a caller passes beside the messages of a request."""

    tools: Tools = ()
    instructions: str = ""
    output_tokens: int = 0
    model: str = ""
    dialect: str | Dialect | None = None

    def __post_init__(self) -> None:
        _check_tools(self.tools)
        check_text(self.instructions or "", "instructions")
        _check_number(self.output_tokens or 0, "output_tokens")
        check_text(self.model or "", "model")


@dataclass(frozen=True, slots=True)
class CompactionOptions:
    """What a caller asks of a compaction that it calls for itself."""

    note: str | None = None
    focus: str | None = None
    target_tokens: int | None = None

    def __post_init__(self) -> None:
        check_text(self.note or "", "note")
        check_text(self.focus or "", "focus")
        if self.target_tokens is not None:
            _check_number(self.target_tokens, "target_tokens", least=1)

    @property
    def kept_first(self) -> str:
        """The focus without the blanks around it."""
        return (self.focus or "").strip()


def check_session_id(session_id: object) -> None:
    """Raise if this is no id of a session."""
    if not isinstance(session_id, str) or not session_id:
        got = f"got {type(session_id).__name__}" if session_id != "" else "it is empty"
        hint = "pass the id of the conversation, a text, first: preflight(session_id, messages)"
        raise InvalidHistory(f"expected a text, {got}", place="session_id", hint=hint)


def check_messages(messages: object) -> None:
    """Raise if this is no list of messages; what is in it is checked when it is read."""
    if not isinstance(messages, list | tuple):
        hint = "pass the conversation as a list of messages"
        raise InvalidHistory(f"expected a list, got {type(messages).__name__}", place="messages", hint=hint)


def check_text(text: object, name: str) -> None:
    """Raise if an argument of this name is no text."""
    if not isinstance(text, str):
        raise InvalidHistory(f"expected a text, got {type(text).__name__}", place=name)


def check_question(query: object, max_tokens: object) -> None:
    """Raise if nothing can be recalled for this."""
    check_text(query, "query")
    _check_number(max_tokens, "max_tokens")


def named_arguments(init: Callable[P, None]) -> Callable[P, None]:
    """Return an `__init__` that raises ConfigError for a keyword that it does not have, and says where a setting goes.

    A setting belongs into the configuration: `CompactManager(model=…)` is what many try first.
    """
    known = [name for name in inspect.signature(init).parameters if name != "self"]

    @wraps(init)
    def checked(*args: P.args, **kwargs: P.kwargs) -> None:
        for name, value in kwargs.items():
            if name not in known:
                raise _unknown_argument(name, value, known)
        init(*args, **kwargs)

    return checked


def _unknown_argument(name: str, value: object, known: Sequence[str]) -> ConfigError:
    if name in CompactConfig.model_fields:
        # A section may hold a key, and is not shown.
        shown = repr(value) if isinstance(value, str | int | float) and len(str(value)) <= _SHOWN_CHARS else "…"
        hint = f"it is a setting: CompactManager(CompactConfig({name}={shown}))"
    else:
        nearest = get_close_matches(name, known, n=1)
        hint = (
            f"did you mean {nearest[0]}?" if nearest else f"it has {', '.join(known)}; settings go into CompactConfig"
        )
    return ConfigError(f"CompactManager has no argument {name!r}", field=name, hint=hint)


def check_plug(plug: object, name: str, *, needs: str, setting: str) -> None:
    """Raise if an argument is nothing that can do its work: what is named by a text is a setting."""
    if plug is not None and not hasattr(plug, needs):
        # Not its value: the address of a store may hold a password.
        got = type(plug).__name__
        hint = f"pass an object with `{needs}`, or set it: CompactManager(CompactConfig({setting}))"
        raise ConfigError(f"expected an object, got {got}", field=name, hint=hint)


def check_summarizer(summarizer: object) -> None:
    """Raise if this cannot write summaries."""
    if summarizer is not None and not callable(summarizer):
        hint = "pass a function of a SummaryRequest; a model is named in the configuration, as summarizer.model"
        raise ConfigError(f"expected a callable, got {summarizer!r}", field="summarizer", hint=hint)


def checked_config(config: object) -> CompactConfig:
    """Return the configuration, by default the usual one; raise if it is none."""
    if config is None:
        return CompactConfig()
    if not isinstance(config, CompactConfig):
        hint = "use CompactConfig(model=…), CompactConfig.of(settings), or CompactConfig.load(path) for a file"
        raise ConfigError(f"the configuration must be a CompactConfig, not {type(config).__name__}", hint=hint)
    return config


def _check_tools(tools: object) -> None:
    if not isinstance(tools, Collection | None):
        raise InvalidHistory(f"expected a list of tool schemas, got {type(tools).__name__}", place="tools")
    for place, tool in enumerate(cast(Collection[object], tools or ())):
        if not isinstance(tool, Mapping):
            raise InvalidHistory(f"expected a tool schema, got {type(tool).__name__}", place=f"tools[{place}]")


def _check_number(number: object, name: str, least: int = 0) -> None:
    if not isinstance(number, Real):
        raise InvalidHistory(f"expected a number of tokens, got {type(number).__name__}", place=name)
    if number < least:
        raise InvalidHistory(f"expected at least {least}, got {float(number):,.0f}", place=name)
