"""Search by meaning: off by default, with a model of one's own or the packaged one; names stay names."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from compact import CompactConfig, CompactManager, ConfigError
from compact.core.audit.artifacts import SecurityContext
from compact.core.engine.events import NoticeEvent
from compact.extras import install_line
from compact.recall import packaged_model
from compact.testing import RecordingSink, Wire, WordTokenizer, assistant, dialogue, tool_exchange, user

# What a word is about, in three numbers: money, ships, weather.
MEANINGS = {
    "refund": (1, 0, 0), "reimbursement": (1, 0, 0), "euros": (0.8, 0, 0.1), "payback": (1, 0.1, 0),
    "harbour": (0, 1, 0), "berth": (0, 1, 0.1), "vessel": (0, 1, 0), "rain": (0, 0, 1), "storm": (0, 0.3, 1),
}  # fmt: skip


class ToyModel:
    """Adds up what words are about, as strict as a real model: text only, a vector each."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        assert texts
        assert all(isinstance(text, str) and text.strip() for text in texts)
        self.read += texts
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> list[float]:
        known = [MEANINGS.get(word.strip(".?,").lower(), (0, 0, 0)) for word in text.split()]
        return [0.01 + sum(numbers) for numbers in zip((0, 0, 0), *known, strict=True)]


def manager_with(*messages: Wire, embed: Any = None, **settings: Any) -> tuple[CompactManager, RecordingSink]:
    sink = RecordingSink()
    config = CompactConfig(max_context_tokens=100_000, telemetry={"exporter": "none"}, **settings)
    manager = CompactManager(config, tokenizer=WordTokenizer(), on_event=sink, embed=embed)
    manager.preflight("s", list(messages))
    return manager, sink


def session() -> list[Wire]:
    return [
        user("We give a reimbursement of fifty euros."),
        assistant("Noted."),
        user("The vessel has a berth."),
        *tool_exchange("c1", "rain and storm", path="weather.txt"),
        *dialogue(6),
    ]


def first(manager: CompactManager, query: str) -> str:
    found = manager.recall("s", query).found
    return found[0].message_id if found else ""


def test_it_is_off_unless_it_is_asked_for() -> None:
    manager, _ = manager_with(*session())
    assert manager._recalling.semantic is None
    assert first(manager, "payback") == first(manager, "harbour") == ""


def test_other_words_for_the_same_are_found() -> None:
    manager, sink = manager_with(*session(), embed=ToyModel())
    assert first(manager, "payback") == "m1"
    assert first(manager, "harbour") == "m3"
    assert first(manager, "storms, rain?") in ("m4", "m5")
    assert sink.of(NoticeEvent) == []


def test_what_is_said_literally_and_means_it_comes_before_what_only_means_it() -> None:
    manager, _ = manager_with(*session(), user("the payback"), *dialogue(4), embed=ToyModel())
    assert first(manager, "payback") == "m18"


def test_a_name_is_a_name() -> None:
    manager, _ = manager_with(*session(), user("see src/refund.py"), *dialogue(3), embed=ToyModel())
    assert first(manager, "what about the reimbursement payback euros refund in src/refund.py") == "m18"
    assert first(manager, "m2") == "m2"


def test_what_is_far_from_everything_finds_nothing() -> None:
    manager, _ = manager_with(*dialogue(10), embed=ToyModel())
    assert manager.recall("s", "unheard of").found == ()


def test_each_entry_is_embedded_once_and_forgotten_with_its_session() -> None:
    model = ToyModel()
    manager, _ = manager_with(*session(), embed=model)
    manager.recall("s", "payback")
    known = len(model.read)
    manager.recall("s", "payback")
    assert len(model.read) == known + 1, "the query alone"
    manager.preflight("s", [*session(), user("one more refund")])
    manager.recall("s", "payback")
    assert model.read[known + 1 :] == ["payback", "one more refund"]
    assert manager._recalling.semantic is not None
    assert list(manager._recalling.semantic._sessions) == ["s"]
    manager.forget("s")
    assert list(manager._recalling.semantic._sessions) == []


class HeldModel(ToyModel):
    """Holds on to texts with a certain word until it is let go."""

    def __init__(self, word: str) -> None:
        super().__init__()
        self.word, self.holds, self.let_go = word, threading.Event(), threading.Event()

    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        if any(self.word in text for text in texts):
            self.holds.set()
            assert self.let_go.wait(20)
        return super().__call__(texts)


def test_a_session_that_is_being_embedded_keeps_no_other_one_waiting() -> None:
    model = HeldModel("vessel")
    manager, _ = manager_with(*session(), embed=model)
    manager.preflight("other", [user("We give a reimbursement of fifty euros."), *dialogue(6)])
    with ThreadPoolExecutor(3) as pool:
        slow = [pool.submit(manager.recall, "s", query) for query in ("payback", "harbour")]
        try:
            assert model.holds.wait(20)
            other = pool.submit(manager.recall, "other", "payback").result(timeout=10)
            assert not any(future.done() for future in slow)
        finally:
            model.let_go.set()
        assert [future.result(timeout=20).found[0].message_id for future in slow] == ["m1", "m3"]
    assert other.found[0].message_id == "m1"
    assert sum("vessel" in text for text in model.read) == 1, "two who ask about one session embed it once"


def test_a_session_that_is_forgotten_while_it_is_embedded_leaves_nothing() -> None:
    model = HeldModel("vessel")
    manager, _ = manager_with(*session(), embed=model)
    assert manager._recalling.semantic is not None
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(manager.recall, "s", "payback")
        try:
            assert model.holds.wait(20)
            manager._recalling.semantic.forget("s")
        finally:
            model.let_go.set()
        assert slow.result(timeout=20).found[0].message_id == "m1"
    assert list(manager._recalling.semantic._sessions) == []


def test_confidential_content_is_shown_to_no_model() -> None:
    model = ToyModel()
    messages = session()
    messages[0]["meta"] = {"sensitivity": "confidential"}
    manager, _ = manager_with(*messages, embed=model)
    assert first(manager, "payback") == ""
    assert not any("reimbursement" in text for text in model.read)
    may = SecurityContext(permissions=frozenset({"read:confidential"}))
    assert manager.recall("s", "reimbursement", security=may).found[0].message_id == "m1", "words still find it"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda texts: [[1.0]] * (len(texts) + 1), "vectors of [1] numbers for 1 texts"),
        (lambda texts: [], "0 vectors"),
        (lambda texts: [[1.0] * (n % 2 + 1) for n in range(len(texts))], "one vector a text, all of the same length"),
        (lambda texts: [[math.nan]] * len(texts), "not finite"),
        (lambda texts: 1 / 0, "ZeroDivisionError"),
        (lambda texts: None, "TypeError"),
    ],
)
def test_a_model_that_fails_costs_its_part_of_the_answer_only(answer: Any, reason: str) -> None:
    manager, sink = manager_with(*session(), embed=answer)
    assert first(manager, "reimbursements") == "m1"
    (notice,) = sink.of(NoticeEvent)
    assert notice.message.startswith("semantic search failed, so words alone were searched")
    assert reason in notice.message


def test_no_package_no_semantic_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packaged_model, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="semantic search needs an embedding model") as refused:
        manager_with(recall={"semantic": True})
    assert install_line("semantic") in str(refused.value)


def test_the_packaged_model_finds_other_words() -> None:
    pytest.importorskip("wordllama", reason="the package wordllama is missing")
    said = "We pay back at most fifty euros to a customer."
    manager, sink = manager_with(user(said), assistant("Fine."), *dialogue(8), recall={"semantic": True})
    assert first(manager, "reimbursement of money to clients") == "m1"
    assert manager.recall("s", "lone \ud800 half") is not None
    assert sink.of(NoticeEvent) == []
