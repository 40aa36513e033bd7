"""The agent of every framework under harder conditions: attachments, parallel calls, edits, cancellation, a crowd.

A conversation is known by its ticket, which is in all that its user says and its tools return:

    world = World(folder)                            # the manager, the provider and the tool, shared by conversations
    async with Kind.shared(world) as shared:         # the framework's agent or client, shared by them too
        talk = Kind("ticket-001x", world, shared)
        await talk.say(question("ticket-001x", 1))   # one turn: parallel calls, one more call, a text
    world.check()                                    # nothing was rejected, and nothing failed

The provider rejects what a real one would, what does not fit, what has another conversation's ticket, what lacks a
result of the newest calls, and what lacks the attachment that it must show.
"""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import io
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Literal, TypeAlias

from PIL import Image as Picture
from pydantic import BaseModel

from adapters.scenario import TOOL, Call, Rejected, look_up
from compact import CompactConfig, CompactManager
from compact.core.engine.events import CompactionCompletedEvent, CompactionErrorEvent
from compact.core.messages.entries import read_entry
from compact.core.messages.legality import check_chat
from compact.core.messages.tokenizer import ProviderAwareTokenizer
from compact.dialects import Dialect, get_dialect
from compact.testing import RecordingSink
from compact.tokens import get_tokenizer
from stalls import own_clock

WINDOW_TOKENS = 4_500
MODEL = "gpt-4o"
INSTRUCTIONS = "You audit depots. Look every depot up and say when you are done."
CLEARED = "[Old tool result content cleared]"
RULE = "Answer from the attached image only."
PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {"ticket": {"type": "string"}, "depot": {"type": "integer"}},
    "required": ["ticket", "depot"],
}
CHAT_TOOL: dict[str, Any] = {
    "type": "function",
    "function": {"name": TOOL, "description": "The stock list of one depot.", "parameters": PARAMETERS},
}
_TICKET = re.compile(r"ticket-\d{3}x")
_LINES = 11  # of a stock list: about 400 tokens
# The run is broken off in its second turn: in the request after its first calls, or in the last of these calls.
BROKEN_REQUEST, BROKEN_DEPOT = 4, 6
Moment: TypeAlias = Literal["model", "tool"]


def ticket(number: int) -> str:
    """The name of a conversation."""
    return f"ticket-{number:03}x"


def question(name: str, turn: int) -> str:
    """What the user says in a turn."""
    return f"This is turn {turn} of {name}: audit the next depots and note who runs them, gate {turn * 37} first."


def listing(name: str, depot: int) -> str:
    """What the tool returns: every line has something of this conversation and this depot."""
    lines = look_up((depot - 1) % 39 + 1).splitlines()[:_LINES]
    return "\n".join([_seal(name, depot), *(f"{line} ({depot}/{name[-4:]})" for line in lines)])


def _seal(name: str, depot: int) -> str:
    return f"Seal of depot {depot} for {name}: S{depot * 7919 % 9973:04}"


def picture() -> bytes:
    """A small PNG."""
    out = io.BytesIO()
    Picture.new("RGB", (24, 24), "navy").save(out, format="PNG")
    return out.getvalue()


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model says to one request, and what the provider counted of it."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    tokens: int = 0
    hangs: bool = False


def script(name: str, turns: int = 8) -> list[Answer]:
    """Each turn: two or three calls at once, one more call, and a text."""
    depots, answers = count(1), list[Answer]()
    for turn in range(1, turns + 1):
        for calls in ((2 if turn % 2 else 3), 1):
            wanted = [next(depots) for _ in range(calls)]
            answers.append(
                Answer(calls=tuple(Call(f"call_{name[-4:]}_{n}", TOOL, {"ticket": name, "depot": n}) for n in wanted))
            )
        answers.append(Answer(text=f"Turn {turn} of {name} is done."))
    return answers


@dataclass(slots=True)
class Seen:
    """What the provider has seen of one conversation."""

    requests: list[str] = field(default_factory=list[str])
    answered: int = 0
    awaited: tuple[str, ...] = ()  # what must be in the next request: the results of the newest calls


class Interrupted(Exception):
    """What breaks off a run where there is no task to cancel."""


@dataclass(slots=True)
class StrictProvider:
    """Checks every request as it goes out, and answers each conversation by its script."""

    must_show: bytes = b""
    breaks_in: Moment | None = None
    is_broken: threading.Event = field(default_factory=threading.Event)
    seen: dict[str, Seen] = field(default_factory=dict[str, Seen])
    rejections: list[str] = field(default_factory=list[str])
    times: list[float] = field(default_factory=list[float])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def ask(
        self,
        items: Sequence[Any],
        dialect: str | Dialect,
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        instructions: str = "",
        model: str = MODEL,
    ) -> Answer:
        """Return what the model answers; raises Rejected. `model` is the one by which it is counted."""
        with self._lock:
            self.times.append(own_clock())
            beside = get_tokenizer(model).count_tools(tools) + get_tokenizer(model).count_text(instructions)
            return self._ask(items, get_dialect(dialect), get_tokenizer(model), beside)

    async def aask(self, items: Sequence[Any], dialect: str | Dialect, **beside: Any) -> Answer:
        """The same in an event loop: where the run is broken off, no answer ever comes."""
        answer = self.ask(items, dialect, **beside)
        if answer.hangs:
            await asyncio.Event().wait()
        return answer

    def _ask(self, items: Sequence[Any], dialect: Dialect, counter: ProviderAwareTokenizer, tokens: int) -> Answer:
        if violations := dialect.check(items):
            self._reject(f"illegal: {[str(violation) for violation in violations]}")
        entries = [entry for block in dialect.read(list(items), 0) for entry in block.entries]
        messages = [read_entry(entry, f"request[{place}]") for place, entry in enumerate(entries)]
        if violations := check_chat(messages):
            self._reject(f"illegal: {[str(violation) for violation in violations]}")
        text = repr(entries)
        names = set(_TICKET.findall(text))
        if len(names) != 1:
            self._reject(f"it has something of {len(names)} conversations: {sorted(names)}")
        (name,) = names
        seen = self.seen.setdefault(name, Seen())
        tokens += sum(map(counter.count_message, messages))
        if tokens > WINDOW_TOKENS - CompactConfig().policy.hard_cap_buffer:
            self._reject(f"{name}: {tokens:,} tokens are too many")
        if missing := [result for result in seen.awaited if result not in text]:
            self._reject(f"{name}: results of the newest calls are not in it: {missing}")
        if self.must_show and not _shows(text, self.must_show):
            self._reject(f"{name}: the attachment is not in it")
        seen.requests.append("\n".join(message.text for message in messages))
        return self._next(name, seen, tokens)

    def _next(self, name: str, seen: Seen, tokens: int) -> Answer:
        if self.breaks_in == "model" and seen.answered == BROKEN_REQUEST and not self.is_broken.is_set():
            self.is_broken.set()
            seen.awaited = ()  # some frameworks lose what a cancelled run has done
            return Answer(hangs=True, tokens=tokens)
        answer = script(name)[seen.answered]
        seen.answered += 1
        seen.awaited = tuple(_seal(name, call.arguments["depot"]) for call in answer.calls)
        if self.breaks_in == "tool" and any(call.arguments["depot"] == BROKEN_DEPOT for call in answer.calls):
            seen.awaited = ()  # they will never be there
        return dataclasses.replace(answer, tokens=tokens)

    def _reject(self, why: str) -> None:
        self.rejections.append(why)
        raise Rejected(why)


def _shows(text: str, attached: bytes) -> bool:
    encoded = base64.b64encode(attached)
    forms = (encoded.decode(), base64.urlsafe_b64encode(attached).decode(), repr(attached))
    return any(form in text for form in forms)


class World:
    """What the conversations of a test share: one manager on files of its own, one provider, one tool."""

    def __init__(self, folder: Path) -> None:
        self.provider = StrictProvider()
        self.sink = RecordingSink()
        config = CompactConfig(
            model=MODEL,
            max_context_tokens=WINDOW_TOKENS,
            state={"url": f"sqlite:///{folder / 'compact.db'}"},
            storage={"path": str(folder / "archive")},
            telemetry={"exporter": "none"},
        )
        self.manager = CompactManager(config, on_event=self.sink)

    def look_up(self, name: str, depot: int) -> str:
        """What the tool returns, in a thread; where the run is broken off it raises Interrupted."""
        if self._breaks(depot):
            raise Interrupted
        return listing(name, depot)

    async def alook_up(self, name: str, depot: int) -> str:
        """The same in an event loop; where the run is broken off it never returns."""
        if self._breaks(depot):
            await asyncio.Event().wait()
        return listing(name, depot)

    def _breaks(self, depot: int) -> bool:
        broken = self.provider.is_broken
        if self.provider.breaks_in != "tool" or depot != BROKEN_DEPOT or broken.is_set():
            return False
        broken.set()
        return True

    def requests(self, name: str) -> list[str]:
        """The texts of all requests of a conversation."""
        return self.provider.seen[name].requests

    def compacted(self) -> set[str]:
        """The sessions that were compacted."""
        return {event.session_id for event in self.sink.of(CompactionCompletedEvent)}

    def check(self) -> None:
        """Nothing was rejected, and nothing of ours failed."""
        assert not self.provider.rejections, self.provider.rejections[:3]
        assert not (errors := self.sink.of(CompactionErrorEvent)), errors


class Conversation(ABC):
    """One conversation on a framework, as its users hold it: at the framework's defaults."""

    def __init__(self, name: str, world: World, shared: Any) -> None:
        self.name = name
        self.world = world
        self.agent = shared

    @classmethod
    @asynccontextmanager
    async def shared(cls, world: World) -> AsyncGenerator[Any]:
        """The agent or the client that all conversations use."""
        yield cls.build(world)

    @classmethod
    def build(cls, world: World) -> Any:
        """Build it, where nothing is to be closed."""
        return None

    @abstractmethod
    async def say(self, text: str, attached: bytes = b"") -> None:
        """One turn, to its end."""

    @abstractmethod
    async def retry(self) -> None:
        """Go on after the run was broken off, as the users of this framework do."""

    @abstractmethod
    async def edit(self, changes: Mapping[str, str]) -> None:
        """Replace texts in the history that the framework, or its user, keeps."""


def edited(value: Any, changes: Mapping[str, str]) -> Any:
    """Return a copy of a message in which texts are replaced: of plain data, a pydantic model or a dataclass."""
    if isinstance(value, str):
        for old, new in changes.items():
            value = value.replace(old, new)
        return value
    if isinstance(value, Mapping):
        return {key: edited(each, changes) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(edited(each, changes) for each in value)
    if isinstance(value, BaseModel):
        fields = {name: getattr(value, name) for name in value.model_fields_set if hasattr(value, name)}
        changed = {name: edited(each, changes) for name, each in fields.items()}
        return value.model_copy(update={name: each for name, each in changed.items() if each != fields[name]})
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [each.name for each in dataclasses.fields(value) if each.init]
        return dataclasses.replace(value, **{name: edited(getattr(value, name), changes) for name in names})
    return value
