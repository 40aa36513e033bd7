"""The recall benchmark asks what it says it asks, on a session small enough to count by hand."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from compact.testing import Wire, assistant, dialogue, system, tool_exchange, user

_BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def benchmark() -> Any:
    # By its file: `recall` is the name of a folder of tests, too.
    sys.path.insert(0, str(_BENCHMARKS))
    spec = importlib.util.spec_from_file_location("recall_benchmark", _BENCHMARKS / "recall.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["recall_benchmark"] = module
    spec.loader.exec_module(module)
    yield module
    sys.path.remove(str(_BENCHMARKS))


def calling(text: str, call_id: str, result: str, **arguments: Any) -> list[Wire]:
    call, answer = tool_exchange(call_id, result, **arguments)
    return [{**call, "content": text}, answer]


def session() -> list[Wire]:
    return [
        system("be kind"),
        user("What is the limit?"),
        *calling("I look at the rules.", "c1", "Refunds are limited: rule R-4471 says fifty.", path="rules.md"),
        *dialogue(6),
        assistant("The limit of a refund is set by rule R-4471 of the shop."),
        *calling("Let me look at the limits of refunds once more.", "c2", "the same", path="rules.md"),
    ]


def test_questions_are_what_the_agent_wrote_and_answers_where_it_stood(benchmark: Any) -> None:
    messages = session()
    (fact,) = benchmark.fact_questions(messages)
    assert fact == ("The limit of a refund is set by rule of the shop", 16, frozenset({2, 3}))
    (again,) = benchmark.again_questions(messages)
    assert again == ("Let me look at the limits of refunds once more.", 17, frozenset({2, 3}))


def test_what_is_near_or_stands_twice_is_no_question(benchmark: Any) -> None:
    near = [message for place, message in enumerate(session()) if not 6 <= place < 12]
    assert list(benchmark.fact_questions(near)) == list(benchmark.again_questions(near)) == []
    twice = [*session()[:8], user("R-4471 again"), *session()[8:]]
    assert list(benchmark.fact_questions(twice)) == []


def test_ranked_search_finds_what_all_words_do_not(benchmark: Any) -> None:
    transcript = benchmark.Transcript("made", tuple(session()), (), 0)
    table, _ = benchmark.measure([transcript])
    assert {name: row["questions"] for name, row in table.items()} == dict.fromkeys(
        ("fact, whole", "fact, keywords", "again, whole", "again, keywords"), 1
    )
    assert [table["fact, whole"][search] for search in benchmark.SEARCHES] == [0.0, 1.0, 1.0]
    assert [table["again, whole"][search] for search in benchmark.SEARCHES] == [0.0, 1.0, 1.0]
