"""A session id that is used again for another conversation, and all that looks like it and is none."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from compact import CompactConfig, CompactManager
from compact.core.engine.events import HistoryBranchedEvent, NoticeEvent
from compact.core.messages.message import Message
from compact.stores.memory import InMemoryCompactionStore
from compact.testing import RecordingSink, WordTokenizer, assistant, dialogue, tool_exchange, user

SYSTEM = {"role": "system", "content": "You are a helpful agent."}
SECRET = "the harbour code is 4711"
OLD = [SYSTEM, user(f"Never publish this: {SECRET}."), assistant("Understood."), *dialogue(30, words=50)]
NEW = [SYSTEM, user("Write a poem about trains.")]


@dataclass(slots=True)
class Agents:
    """Managers on one store, one after the other, as processes that are started again."""

    url: str
    store: InMemoryCompactionStore | None
    sink: RecordingSink = field(default_factory=RecordingSink)
    opened: list[CompactManager] = field(default_factory=list[CompactManager])

    def start(self) -> CompactManager:
        """Start anew: nothing is in memory."""
        self.stop()
        self.sink = RecordingSink()
        config = CompactConfig(
            max_context_tokens=6_000,
            state={"url": self.url},
            storage={"adapter": "none"},
            telemetry={"exporter": "none"},
        )
        manager = CompactManager(config, tokenizer=WordTokenizer(), on_event=self.sink, store=self.store)
        self.opened.append(manager)
        return manager

    def stop(self) -> None:
        for manager in self.opened:
            manager.close()
        self.opened.clear()

    @property
    def reuses(self) -> list[str]:
        return [event.message for event in self.sink.of(NoticeEvent) if "was used before" in event.message]


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def agents(request: pytest.FixtureRequest) -> Iterator[Agents]:
    if request.param == "memory":
        made = Agents("memory:", InMemoryCompactionStore())
    else:
        made = Agents(request.getfixturevalue("sqlite_url" if request.param == "sqlite" else "postgres_url"), None)
    yield made
    made.stop()


def after_old(agents: Agents) -> list[dict[str, Any]]:
    """Have the old conversation compacted, and return its last prompt."""
    manager = agents.start()
    manager.preflight("main", OLD)
    return manager.manual_compact("main", OLD)


def test_nothing_of_the_old_conversation_is_in_the_new_one(agents: Agents) -> None:
    after_old(agents)
    manager = agents.start()
    assert manager.preflight("main", NEW) == NEW
    grown = [*NEW, assistant("Steel and steam."), *dialogue(40, words=60)]
    prompt = manager.manual_compact("main", grown)
    assert "<COMPACT-SUMMARY" in json.dumps(prompt)
    assert "harbour" not in json.dumps(prompt)
    assert "trains" in json.dumps(prompt)
    texts = [message.text for message in manager.history("main")]
    assert any(SECRET in text for text in texts), "the log is append-only: what happened stays"


def test_one_notice_says_what_to_do(agents: Agents) -> None:
    after_old(agents)
    manager = agents.start()
    manager.preflight("main", NEW)
    manager.preflight("main", [*NEW, assistant("Steel."), user("Longer.")])
    manager.preflight("main", [SYSTEM, user("And now something else.")])
    (notice,) = agents.reuses
    assert "'main'" in notice
    assert "give each conversation an id of its own" in notice


def test_recall_stays_in_the_conversation(agents: Agents) -> None:
    after_old(agents)
    manager = agents.start()
    manager.preflight("main", [*NEW, assistant("The harbour lies still."), user("Longer.")])
    secret_id = next(m.id for m in manager.history("main") if SECRET in m.text)
    for is_in_memory in (True, False):
        asked = manager if is_in_memory else agents.start()
        found = str(asked.recall("main", "harbour code 4711"))
        assert "The harbour lies still." in found
        assert SECRET not in found
        assert not asked.recall("main", secret_id).found


def test_many_matches_of_the_other_conversation_do_not_hide_those_of_this_one(agents: Agents) -> None:
    manager = agents.start()
    manager.preflight("main", [SYSTEM, *[user(f"refund refund refund {n}") for n in range(60)]])
    manager = agents.start()
    manager.preflight("main", [SYSTEM, user("A long list of other things, and among them one refund of the year.")])
    found = manager.recall("main", "refund")
    assert [entry.content.split()[0] for entry in found.entries] == ["A"]


def test_a_summary_that_was_prefetched_for_the_other_conversation_is_not_used(agents: Agents) -> None:
    manager = agents.start()
    manager.preflight("main", OLD)
    assert manager.prefetch_summary("main")
    manager = agents.start()
    manager.preflight("main", NEW)
    prompt = manager.manual_compact("main", [*NEW, assistant("Steel."), *dialogue(40, words=60)])
    assert "harbour" not in json.dumps(prompt)
    assert [e.message for e in agents.sink.of(NoticeEvent) if "prefetched" in e.message] == []


def test_going_back_to_the_old_conversation_finds_it_again(agents: Agents) -> None:
    after_old(agents)
    manager = agents.start()
    manager.preflight("main", NEW)
    manager.preflight("main", [*OLD, user("What was the code?")])
    assert SECRET in str(manager.recall("main", "harbour code"))
    assert not manager.recall("main", "trains").found
    manager = agents.start()
    assert SECRET in str(manager.recall("main", "harbour code"))
    manager.preflight("main", [*NEW, assistant("Steel."), user("Longer.")])
    assert manager.recall("main", "trains").found
    assert SECRET not in str(manager.recall("main", "harbour code"))
    assert agents.reuses == [], "both are known by now"


# -- what is no reuse ------------------------------------------------------------------------------------------------


def reworded(entry: dict[str, Any]) -> dict[str, Any]:
    return {**entry, "content": [{"type": "text", "text": f"  {entry['content']}\n"}]}


RESUMES: dict[str, Callable[[list[dict[str, Any]]], list[Any]]] = {
    "the same list": lambda _: list(OLD),
    "the same and more": lambda _: [*OLD, user("Go on.")],
    "our prompt": lambda prompt: [*prompt, user("Go on.")],
    "only our summary": lambda prompt: [
        SYSTEM, next(m for m in prompt if "<COMPACT-SUMMARY" in str(m["content"])), user("Go on."),
    ],
    "an older summary of ours": lambda _: [
        SYSTEM, user("<COMPACT-SUMMARY v9>\n(60 earlier messages)\n</COMPACT-SUMMARY>"), user("Go on."),
    ],
    "trimmed to its end": lambda _: [SYSTEM, *OLD[-4:], user("Go on.")],
    "trimmed, without the system message": lambda _: [OLD[-1], user("Go on.")],
    "another system message": lambda _: [{"role": "system", "content": "Be terse."}, *OLD[1:], user("Go on.")],
    "rewound to its beginning": lambda _: OLD[:2],
    "the first message edited": lambda _: [SYSTEM, user("Never publish anything."), *OLD[2:]],
    "the end edited": lambda _: [*OLD[:10], user("No, otherwise.")],
    "written in another form": lambda _: [SYSTEM, *(reworded(m) for m in OLD[1:]), user("Go on.")],
    "only the system message": lambda _: [SYSTEM],
    "as messages of ours": lambda _: [Message(m["role"], m["content"]) for m in OLD],
}  # fmt: skip


@pytest.mark.parametrize("is_restarted", [False, True], ids=["same-process", "restarted"])
@pytest.mark.parametrize("case", RESUMES)
def test_going_on_is_no_reuse(agents: Agents, case: str, is_restarted: bool) -> None:
    prompt = after_old(agents)
    manager = agents.start() if is_restarted else agents.opened[0]
    manager.preflight("main", RESUMES[case](prompt))
    assert agents.reuses == []
    assert manager.recall("main", "m2").found, "recall finds what went before"


def test_a_first_conversation_is_no_reuse(agents: Agents) -> None:
    manager = agents.start()
    manager.preflight("main", [SYSTEM])
    manager.preflight("main", [{"role": "system", "content": "Be terse."}, user("Hello."), *tool_exchange("c1", "42")])
    manager.preflight("main", OLD)
    assert len(agents.reuses) == 1, "and another one is"
    assert len(agents.sink.of(HistoryBranchedEvent)) == 2


def test_a_tool_result_alone_does_not_make_it_the_same_conversation(agents: Agents) -> None:
    """Calls of small models are numbered in each conversation: their ids say nothing."""
    manager = agents.start()
    manager.preflight("main", [SYSTEM, user("List the files."), *tool_exchange("call_1", "a.py b.py")])
    manager = agents.start()
    manager.preflight("main", [SYSTEM, user("What time is it?"), *tool_exchange("call_1", "noon", tool="clock")])
    assert len(agents.reuses) == 1
