"""Writes down a conversation message by message, and chooses what of earlier comes up again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random
from typing import Any, TypeVar

from fidelity.sample.words import Words

T = TypeVar("T")

# Of what comes up again, the share that is the newest there is, and how many count as that.
_NEW_SHARE, _NEWEST = 0.7, 1


class Script:
    """A conversation as it is written."""

    def __init__(self, seed: str) -> None:
        self.random = Random(seed)
        self.words = Words(self.random)
        self.messages: list[dict[str, Any]] = []
        self._calls = 0

    def system(self, text: str) -> None:
        """What the agent is told before anything else."""
        self.messages.append({"role": "system", "content": text})

    def user(self, text: str) -> None:
        """What a person types."""
        self.messages.append({"role": "user", "content": text})

    def agent(self, text: str) -> None:
        """What the agent answers."""
        self.messages.append({"role": "assistant", "content": text})

    def call(self, tool: str, arguments: dict[str, Any], result: str, *, said: str = "") -> None:
        """A call and its result, with what the agent said before it."""
        self._calls += 1
        name = f"call_{self._calls}"
        function = {"name": tool, "arguments": json.dumps(arguments)}
        calls = [{"id": name, "type": "function", "function": function}]
        self.messages.append({"role": "assistant", "content": said or None, "tool_calls": calls})
        self.messages.append({"role": "tool", "tool_call_id": name, "content": result})

    def one(self, choices: Sequence[T]) -> T:
        """Any of them."""
        return self.random.choice(choices)

    def happens(self, share: float) -> bool:
        """True as often as that."""
        return self.random.random() < share

    def again(self, met: Sequence[T]) -> T:
        """Something that was met before: often one of the newest, else any."""
        return self.one(met[-_NEWEST:] if self.happens(_NEW_SHARE) else met)

    def several(self, met: Sequence[T], count: int) -> list[T]:
        """Some different ones, in their order."""
        places = sorted(self.random.sample(range(len(met)), min(count, len(met))))
        return [met[place] for place in places]


class Session:
    """One conversation of an agent; each kind of agent writes its own."""

    def __init__(self, script: Script) -> None:
        self.script, self.words = script, script.words

    def write(self) -> None:
        """Write the conversation into the script."""
        raise NotImplementedError


def messages_of(kind: type[Session], seed: str) -> list[dict[str, Any]]:
    """All messages of one session."""
    script = Script(seed)
    kind(script).write()
    return script.messages
