"""What a task is made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tasks.facts import Fact


@dataclass(frozen=True, slots=True)
class Say:
    """A person says something, and the agent replies."""

    text: str
    reply: str


@dataclass(frozen=True, slots=True)
class Work:
    """The agent calls a tool, as the task wants it whatever was before, and reads the result."""

    tool: str
    arguments: dict[str, Any]
    result: str
    said: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """A person asks for something that needs a fact from far back.

    The agent calls `tool` with the value in place of `{}`. If its prompt does not tell the value, it asks the recall
    tool: first the request itself, then `queries`, which say it in fewer or other words, never with the value. A rule
    has none, and is not asked for: nobody looks for a rule they do not know of.
    """

    kind: str
    ask: str
    fact: Fact
    tool: str
    arguments: dict[str, Any]
    done: str
    queries: tuple[str, ...] = ()

    def filled(self, value: str) -> dict[str, Any]:
        """Return the arguments with a value in them."""
        return {
            name: text.replace("{}", value) if isinstance(text, str) else text for name, text in self.arguments.items()
        }


Step = Say | Work | Check


@dataclass(frozen=True, slots=True)
class Planted:
    """A fact in a task: how it comes up, how it changes, and what needs it in the end."""

    told: tuple[Say | Work, ...]
    check: Check
    changed: tuple[Say | Work, ...] = ()


@dataclass(frozen=True, slots=True)
class Task:
    """A conversation with checkable outcomes."""

    name: str
    domain: str
    system: str
    steps: tuple[Step, ...] = field(repr=False)

    @property
    def checks(self) -> tuple[Check, ...]:
        """What has to come out right."""
        return tuple(step for step in self.steps if isinstance(step, Check))
