"""Every framework with attachments, parallel calls, edits of the past, cancellation, and fifty conversations at once.

Each check is written once and runs on every framework that can express it; a stall above a second fails it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from adapters.hard_clients import CLIENTS
from adapters.hard_frameworks import FRAMEWORKS
from adapters.hard_scenario import (
    CLEARED,
    MODEL,
    RULE,
    Conversation,
    Interrupted,
    Moment,
    World,
    listing,
    picture,
    question,
    ticket,
)
from adapters.hard_wrapped_models import WRAPPED_MODELS, Smolagents
from compact.core.messages.attachments import attachments_of
from compact.tokens import get_tokenizer
from stalls import own_clock, stall_limit, watched_loop

ALL: dict[str, type[Conversation]] = {**CLIENTS, **FRAMEWORKS, **WRAPPED_MODELS}
CROWD = 50
# Generous: how long fifty conversations may take on two busy cores.
CROWD_SECONDS = 60.0
# LlamaIndex looks at its own models by names that pydantic has deprecated.
MARKS: dict[str, Any] = {"llama_index": pytest.mark.filterwarnings("ignore::DeprecationWarning")}
# A tool of smolagents' that raises ends no run: the agent reads the error as the tool's answer.
BROKEN_OFF = [
    pytest.param(moment, kind, id=f"{moment}-{name}", marks=MARKS.get(name, ()))
    for moment in ("model", "tool")
    for name, kind in ALL.items()
    if (moment, kind) != ("tool", Smolagents)
]

every = pytest.mark.parametrize(
    "kind", [pytest.param(kind, id=name, marks=MARKS.get(name, ())) for name, kind in ALL.items()]
)
pytestmark = [
    pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:create_react_agent has been moved"),
]


def play(kind: type[Conversation], folder: Path, talk: Callable[[World, Any], Coroutine[Any, Any, None]]) -> World:
    """Hold conversations in one event loop that is watched; nothing may be rejected, fail or stall."""
    world = World(folder)
    # Loading a vocabulary, once in a process, takes most of a second.
    assert get_tokenizer(MODEL).count_text("warm")

    async def main() -> float:
        async with kind.shared(world) as shared, watched_loop() as longest:
            await talk(world, lambda number: kind(ticket(number), world, shared))
        await world.manager.aclose()
        return longest.seconds

    stalled = asyncio.run(main())
    world.check()
    assert stalled < stall_limit(), f"the loop stood still for {stalled:.2f} s"
    return world


@every
def test_an_attachment_that_a_rule_is_about_is_in_each_prompt(kind: type[Conversation], tmp_path: Path) -> None:
    """Five turns: more than an attachment is kept by its age alone. The provider rejects a request without it."""

    async def talk(world: World, opened: Any) -> None:
        world.provider.must_show = picture()
        conversation = opened(1)
        await conversation.say(f"{RULE} {question(ticket(1), 1)}", picture())
        for turn in range(2, 6):
            await conversation.say(question(ticket(1), turn))

    world = play(kind, tmp_path, talk)
    assert len(world.requests(ticket(1))) == 15
    (session_id,) = world.compacted()
    assert any(attachments_of(message) for message in world.manager.history(session_id))


@every
def test_parallel_calls_are_paired_in_every_prompt(kind: type[Conversation], tmp_path: Path) -> None:
    """The provider rejects a call without its result, and a request without the newest results, word for word."""

    async def talk(world: World, opened: Any) -> None:
        conversation = opened(1)
        for turn in range(1, 5):
            await conversation.say(question(ticket(1), turn))

    world = play(kind, tmp_path, talk)
    requests = world.requests(ticket(1))
    assert len(requests) == 12
    assert len(world.compacted()) == 1
    assert listing(ticket(1), 1) not in requests[-1], "nothing had left the prompt"


@every
def test_a_past_that_is_edited_between_two_runs(kind: type[Conversation], tmp_path: Path) -> None:
    """A result is cleared and a question rewritten: the next prompts have neither as it was."""
    name = ticket(1)
    old, new = question(name, 1), f"This is turn one of {name}, rewritten: only the gate 4711 matters."

    async def talk(world: World, opened: Any) -> None:
        conversation = opened(1)
        await conversation.say(old)
        await conversation.edit({listing(name, 2): CLEARED})
        await conversation.say(question(name, 2))
        await conversation.edit({old: new})
        for turn in (3, 4):
            await conversation.say(question(name, turn))

    world = play(kind, tmp_path, talk)
    requests = world.requests(name)
    assert len(requests) == 12
    assert listing(name, 2) in requests[2]
    assert not any(listing(name, 2) in request for request in requests[3:])
    assert old in requests[5]
    assert not any(old in request for request in requests[6:])
    assert all(new in request for request in requests[6:])


@pytest.mark.parametrize(("moment", "kind"), BROKEN_OFF)
def test_a_run_that_is_broken_off_goes_on_at_once(moment: Moment, kind: type[Conversation], tmp_path: Path) -> None:
    """Cancelled while the model thinks or a tool works; the next request leaves within two seconds, and is legal."""

    async def talk(world: World, opened: Any) -> None:
        world.provider.breaks_in = moment
        conversation = opened(1)
        await conversation.say(question(ticket(1), 1))
        run = asyncio.create_task(conversation.say(question(ticket(1), 2)))
        while not world.provider.is_broken.is_set() and not run.done():
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        run.cancel()
        (ended,) = await asyncio.gather(run, return_exceptions=True)
        assert isinstance(ended, asyncio.CancelledError) or isinstance(ended.__cause__, Interrupted), repr(ended)
        before, since = len(world.provider.times), own_clock()
        await asyncio.wait_for(conversation.retry(), 20)
        assert world.provider.times[before] - since < 2.0
        await conversation.say(question(ticket(1), 3))

    world = play(kind, tmp_path, talk)
    assert world.provider.is_broken.is_set()
    # Without a name, a conversation that goes on from an earlier place is a session of its own.
    assert world.compacted()


@every
def test_fifty_at_once(kind: type[Conversation], tmp_path: Path) -> None:
    """One manager, one agent or client, one event loop: none sees anything of another's, and each is compacted."""

    async def talk(world: World, opened: Any) -> None:
        async def one(number: int) -> None:
            conversation = opened(number)
            for turn in (1, 2):
                await conversation.say(question(ticket(number), turn))

        await asyncio.wait_for(asyncio.gather(*(one(number) for number in range(CROWD))), CROWD_SECONDS)

    world = play(kind, tmp_path, talk)
    assert [len(world.requests(ticket(number))) for number in range(CROWD)] == [6] * CROWD
    assert len(world.compacted()) == CROWD
