"""What a reader of logs returns: sessions in one form, the agent's own compactions, and what was not understood."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

Entry = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class OwnCompaction:
    """A compaction that the agent itself did.

    Attributes:
        position: How many messages of the log came before it.
        summary: What the agent wrote in place of them; empty if it only cut them, or if the text is encrypted.
        kept: The positions of earlier messages that stayed in the prompt as they were.
        place: Where it is in the log, for example `line 58`.
        trigger: `auto`, `manual`, or empty if the log does not say.
        tokens_before: The size of the prompt before it, as the agent counted it; 0 if the log does not say.
    """

    position: int
    summary: str
    kept: tuple[int, ...] = ()
    place: str = ""
    trigger: str = ""
    tokens_before: int = 0


@dataclass(frozen=True, slots=True)
class UnknownLines:
    """Lines or items of one kind that no rule of the reader covers.

    Attributes:
        kind: What they call themselves, for example `type "mode-change"`.
        count: How many there are.
        first: Where the first one is.
    """

    kind: str
    count: int
    first: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentLog:
    """One session of an agent, as its log has it, in Chat Completions form.

    `messages` is everything that happened on the branch that the session ended with. The summaries of the agent's own
    compactions are in `compactions`, not among the messages; thinking is left out, and counted.

    Attributes:
        agent: The agent or the tool that wrote the log.
        messages: Chat Completions messages; results stand behind the message that made the calls.
        version: The version of the agent, if the log has it.
        session_id: The agent's own id of the session.
        parent_id: The session that started this one, if it is one of a subagent.
        model: The model that was used last.
        instructions: The system prompt, if the log has it.
        compactions: The agent's own compactions, in their order.
        unknown: What was not understood.
        thinking: How many pieces of thinking were left out.
        source: The file, and which session in it if it has several.
    """

    agent: str
    messages: Sequence[Entry]
    version: str = ""
    session_id: str = ""
    parent_id: str = ""
    model: str = ""
    instructions: str = ""
    compactions: tuple[OwnCompaction, ...] = ()
    unknown: tuple[UnknownLines, ...] = ()
    thinking: int = 0
    source: str = ""

    @property
    def calls(self) -> int:
        """How many tool calls the messages make."""
        return sum(len(message.get("tool_calls") or ()) for message in self.messages)

    @property
    def results(self) -> int:
        """How many tool results there are."""
        return sum(message["role"] == "tool" for message in self.messages)

    def prompt_before(self, number: int) -> list[Entry]:
        """Return what the agent had before its compaction `number`: the last summary, and the messages behind it.

        Args:
            number: Which compaction; the first is 0.
        """
        compaction = self.compactions[number]
        if number == 0:
            return list(self.messages[: compaction.position])
        earlier = self.compactions[number - 1]
        return [*self.prompt_after(number - 1), *self.messages[earlier.position : compaction.position]]

    def prompt_after(self, number: int) -> list[Entry]:
        """Return what the agent had right after its compaction `number`: the summary, and what it kept.

        Args:
            number: Which compaction; the first is 0.
        """
        compaction = self.compactions[number]
        kept = [self.messages[position] for position in compaction.kept]
        system = [entry for entry in kept if entry["role"] in ("system", "developer")]
        others = [entry for entry in kept if entry["role"] not in ("system", "developer")]
        summary = (
            [{"role": "user", "content": compaction.summary, "name": "compact_summary"}] if compaction.summary else []
        )
        return [*system, *summary, *others]

    def later(self, number: int) -> Sequence[Entry]:
        """Return what happened after the compaction `number`, up to the next one.

        Args:
            number: Which compaction; the first is 0.
        """
        following = self.compactions[number + 1 :]
        end = following[0].position if following else len(self.messages)
        return self.messages[self.compactions[number].position : end]

    def from_source(self, source: str) -> AgentLog:
        """Return the log with the name of its file.

        Args:
            source: The name.
        """
        return replace(self, source=source)
