"""The model-run summariser against a scripted server: strategies, parts, merging, settings, secrets, accounts."""

from __future__ import annotations

import json
import threading
from functools import partial
from typing import Any

import pytest

from compact.constraints import LearnedConstraints
from compact.core.errors import SpendLimitReached, SummaryEmpty
from compact.core.facts import extraction
from compact.core.facts.ledger import FactKind
from compact.core.messages.message import Message, ToolCall
from compact.core.summary.summarizer import Spending, SummaryRequest
from compact.core.summary.summary import StructuredSummary, render_summary_text
from compact.redaction import Redactor
from compact.summarizers.clients.call_settings import CallSettings
from compact.summarizers.clients.openai_client import OpenAIClient
from compact.summarizers.clients.retrying import RetryPolicy
from compact.summarizers.llm import LlmSummarizer
from compact.summarizers.spending import SpendLimits
from compact.testing import ReceivedRequest, ScriptedModel, fail, say, say_json
from compact.testing.model_script import Raw

find_facts = partial(extraction.find_facts, constraints=LearnedConstraints())

DEFAULTS = {"seed": 42, "temperature": 0, "response_format": {"type": "json_object"}}
HISTORY = (
    Message("user", "Cap the retries in src/retry.py.", id="m1"),
    Message("assistant", "", id="m2", tool_calls=(ToolCall("c", "read_file", '{"path": "src/retry.py"}'),)),
    Message("tool", "def retry(call): ...", id="m3", tool_call_id="c"),
    Message("assistant", "I cap them at three. TODO: write a test for retry().", id="m4"),
)


def words(text: str) -> int:
    return len(text.split())


def summarizer(server: ScriptedModel, **options: Any) -> LlmSummarizer:
    client = OpenAIClient("gpt-4o-mini", base_url=server.base_url, api_key="any")
    usual = {"model": "gpt-4o-mini", "window_tokens": 32_000, "count_text": words}
    return LlmSummarizer(client, **{**usual, "retries": RetryPolicy(total_seconds=10), **options})


def asked(*messages: Message, **fields: Any) -> SummaryRequest:
    messages = messages or HISTORY
    span = fields.pop("span", messages)
    return SummaryRequest(
        **{
            "messages": messages,
            "span": span,
            "previous": None,
            "ledger": find_facts(span),
            "max_tokens": 400,
            "count_text": words,
            **fields,
        }
    )


def later(number: int, text: str, role: str = "assistant") -> Message:
    return Message(role, text, id=f"m{number}")


# -- what is sent --------------------------------------------------------------------------------------------------


def test_the_same_request_is_sent_byte_for_byte_with_seed_and_temperature() -> None:
    with ScriptedModel(say_json({"facts": ["capped at three"]})) as model:
        first, second = (summarizer(model, settings=CallSettings(DEFAULTS))(asked()) for _ in range(2))
        one, two = (dict(request.body) for request in model.requests)
    assert first == second
    assert one == two
    assert (one["seed"], one["temperature"], one["response_format"]) == (42, 0, {"type": "json_object"})
    assert "max_tokens" not in one


def test_what_the_endpoint_rejects_is_dropped_once_and_remembered() -> None:
    with ScriptedModel(say_json({"facts": ["capped"]}), reasoning=True) as model:
        ask = summarizer(model, settings=CallSettings(DEFAULTS))
        ask(asked())
        ask(asked())
        sent = ["temperature" in request.body for request in model.requests]
    assert sent == [True, False, False]
    assert len(model.rejections) == 1


def test_a_server_without_json_mode_is_asked_without_it() -> None:
    def old_server(request: ReceivedRequest) -> Any:
        if "response_format" in request.body:
            return fail(400, "extra fields not permitted: response_format")
        return say_json({"facts": ["capped"]})

    with ScriptedModel(old_server) as model:
        ask = summarizer(model, settings=CallSettings(DEFAULTS))
        assert ask(asked()).facts == ("capped",)
        ask(asked())
        assert ["response_format" in request.body for request in model.requests] == [True, False, False]
        assert all(request.body["seed"] == 42 for request in model.requests)


def test_options_of_the_users_own_are_sent_and_never_dropped() -> None:
    with ScriptedModel(fail(400, "reasoning_effort is not supported")) as model:
        ask = summarizer(model, settings=CallSettings(DEFAULTS, {"reasoning_effort": "low"}))
        with pytest.raises(Exception, match="reasoning_effort"):
            ask(asked())
        assert [request.body["reasoning_effort"] for request in model.requests] == ["low"]


def test_secrets_stay_here_if_that_is_constrainted() -> None:
    key = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"
    history = (later(1, f"use api_key={key} for it", "user"), later(2, "done"))
    with ScriptedModel(say_json({"facts": ["the key works"]})) as model:
        summarizer(model)(asked(*history))
        summarizer(model, redact=Redactor().message)(asked(*history))
        plain, clean = (request.prompt for request in model.requests)
    assert key in plain
    assert key not in clean
    assert "<REDACTED>" in clean


# -- what comes back -----------------------------------------------------------------------------------------------


def test_the_ledger_comes_back_with_what_was_told() -> None:
    with ScriptedModel(say_json({"facts": ["capped at three"]})) as model:
        summary = summarizer(model)(asked())
    assert summary.ledger.subject_of(FactKind.TASK) == "Cap the retries in src/retry.py."
    assert summary.facts == ("capped at three",)


def test_nothing_told_is_a_failure_not_an_empty_summary() -> None:
    with ScriptedModel(say_json({})) as model, pytest.raises(SummaryEmpty):
        summarizer(model)(asked())


def test_a_decision_log_is_chronological() -> None:
    entries = [{"step_id": step, "decision": f"decided at {step}"} for step in ("m4", "m1", "m3")]
    with ScriptedModel(say_json({"decisions": entries})) as model:
        summary = summarizer(model)(asked(form="decision_log"))
        assert "`[step_id] decision :: rationale :: inputs :: outputs`" in model.requests[0].asked
    assert [decision.decision.split(" ::")[0] for decision in summary.decisions] == [
        "[m1] decided at m1",
        "[m3] decided at m3",
        "[m4] decided at m4",
    ]


def test_the_second_round_is_a_delta_and_finished_work_does_not_come_back() -> None:
    first = {
        "decisions": [{"decision": "cap retries at three"}],
        "open_items": [{"item": "write a test for retry()"}, {"item": "update the changelog"}],
        "facts": ["limit: 3"],
        "narrative": "Retries are being capped.",
    }
    second = {
        "decisions": [{"decision": "cap retries at three"}, {"decision": "back off twice as long each time"}],
        "open_items": [{"item": "update the changelog"}],
        "closed_items": ["O1"],
        "narrative": "Retries are capped and tested.",
    }
    new = later(5, "The test for retry() is written and passes.")
    with ScriptedModel(say_json(first), say_json(second)) as model:
        ask = summarizer(model)
        one = ask(asked())
        two = ask(asked(new, span=(*HISTORY, new), previous=one))
        data = model.requests[1].asked
    assert "O1: write a test for retry()" in data
    assert "[m5] assistant: The test for retry()" in data
    assert "[m3]" not in data, "only what is new is told again"
    assert [decision.decision for decision in two.decisions] == [
        "cap retries at three",
        "back off twice as long each time",
    ]
    assert [item.item for item in two.open_items] == ["update the changelog"]
    assert two.facts == ("limit: 3",)
    assert two.narrative == "Retries are capped and tested."


def test_what_code_found_open_can_be_closed_and_stays_closed() -> None:
    request = asked()
    (found,) = request.ledger.of(FactKind.OPEN_ITEM)
    with ScriptedModel(say_json({"facts": ["x y z"], "closed_items": ["C1"]}), say_json({"facts": ["more"]})) as model:
        ask = summarizer(model)
        one = ask(request)
        new = later(5, "On to the next thing.")
        two = ask(asked(new, span=(*HISTORY, new), previous=one))
        assert f"C1: {found.subject}" in model.requests[0].asked
    for summary in (one, two):
        text = render_summary_text(summary, version=1, messages=4)
        assert found.subject not in text


def test_an_item_that_is_closed_and_opened_in_one_answer_is_closed() -> None:
    answer = {
        "open_items": ["write a test for retry()"],
        "closed_items": ["write a test for retry()"],
        "facts": ["ok then"],
    }
    with ScriptedModel(say_json(answer)) as model:
        assert summarizer(model)(asked()).open_items == ()


def test_over_many_rounds_the_summary_does_not_grow_without_end() -> None:
    def told(request: ReceivedRequest) -> Any:
        number = request.number
        return say_json(
            {"facts": [f"fact {number}-{i} with some more words to it" for i in range(6)], "narrative": f"n{number}"}
        )

    previous: StructuredSummary | None = None
    with ScriptedModel(told) as model:
        ask = summarizer(model)
        for round_number in range(12):
            new = later(round_number, f"step {round_number}")
            previous = ask(asked(new, previous=previous, max_tokens=200, ledger=find_facts(())))
            assert words(render_summary_text(previous, version=1, messages=1)) <= 200
    assert previous is not None
    assert previous.facts[-1].startswith("fact 12-5"), "the newest stay"


# -- parts ---------------------------------------------------------------------------------------------------------


def test_a_long_span_is_asked_about_in_parts_that_build_on_each_other() -> None:
    history = tuple(later(n, f"part {n} " + "word " * 200, "user" if n % 2 else "assistant") for n in range(40))

    def told(request: ReceivedRequest) -> Any:
        return say_json({"facts": [f"answer {request.number}"], "narrative": f"after {request.number}"})

    with ScriptedModel(told, window_tokens=6_000, count=words) as model:
        summary = summarizer(model, window_tokens=4_000)(asked(*history))
        assert model.rejections == ()
        prompts = [request.asked for request in model.requests]
    assert 2 < len(prompts) <= 10
    assert "F1: answer 1" in prompts[1]
    assert "after 1" in prompts[1]
    assert "the rest follows" in prompts[0]
    assert "the rest follows" not in prompts[-1]
    assert summary.facts == tuple(f"answer {number}" for number in range(1, len(prompts) + 1))
    assert summary.narrative == f"after {len(prompts)}"
    assert all(any(f"[m{n}]" in prompt for prompt in prompts) for n in range(40))


# -- limits --------------------------------------------------------------------------------------------------------


def test_a_session_may_ask_so_often_and_no_more() -> None:
    with ScriptedModel(say_json({"facts": ["capped"]})) as model:
        ask = summarizer(model, limits=SpendLimits(max_calls=2))
        one, other = asked(session_id="one", spending=Spending()), asked(session_id="other", spending=Spending())
        ask(one)
        ask(one)
        with pytest.raises(SpendLimitReached, match="session 'one' has asked the summariser 2 times"):
            ask(one)
        ask(other)
        assert len(model.requests) == 3


def test_calls_that_fail_count_too() -> None:
    with ScriptedModel(*[fail(500, "busy")] * 9) as model:
        ask = summarizer(model, limits=SpendLimits(max_calls=2))
        with pytest.raises(SpendLimitReached, match="2 times"):
            ask(asked(spending=Spending()))
        assert len(model.requests) == 2


def test_money_is_counted_by_what_the_provider_reports() -> None:
    limits = SpendLimits(max_usd=1.0, price=lambda tokens_in, tokens_out: tokens_in * 0.0005 + tokens_out * 0.001)
    spent = Spending()
    with ScriptedModel(say_json({"facts": ["capped"]})) as model:
        ask = summarizer(model, limits=limits)
        ask(asked(max_tokens=50, spending=spent))
        assert spent.calls == 1
        assert spent.input_tokens == model.requests[0].prompt_tokens
        assert spent.usd == pytest.approx(spent.input_tokens * 0.0005 + spent.output_tokens * 0.001)
        with pytest.raises(SpendLimitReached, match=r"has spent \$0\.\d+ on summaries"):
            ask(asked(spending=spent))
        assert len(model.requests) == 1


def test_many_threads_may_ask_at_once() -> None:
    spent = Spending()
    with ScriptedModel(say_json({"facts": ["capped"]}), reasoning=True) as model:
        ask = summarizer(model, settings=CallSettings(DEFAULTS))
        found: list[StructuredSummary] = []
        threads = [threading.Thread(target=lambda: found.append(ask(asked(spending=spent)))) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert len(found) == 6
        # A call that was rejected is one too.
        assert spent.calls == len(model.requests)


def test_the_identity_changes_with_model_prompt_and_settings() -> None:
    with ScriptedModel(say("x")) as model:
        one = summarizer(model).identity("brief")
        assert one == summarizer(model).identity("brief")
        assert one != summarizer(model).identity("task_state")
        assert one != summarizer(model, model="other").identity("brief")
        assert one != summarizer(model, settings=CallSettings({"seed": 7})).identity("brief")


def test_usage_that_is_not_reported_is_estimated() -> None:
    body = {
        "choices": [
            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": '{"facts": ["a b"]}'}}
        ]
    }
    with ScriptedModel(Raw(json.dumps(body).encode())) as model:
        request = asked()
        summarizer(model)(request)
    assert request.spending.input_tokens > 100
