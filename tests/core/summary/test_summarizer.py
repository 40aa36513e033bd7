"""What is asked of a summariser, and when a remembered summary may be used again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compact.core.messages.message import Message, ToolCall
from compact.core.summary.span_index import SpanIndex
from compact.core.summary.summarizer import SummaryRequest, compute_content_hash, create_summary_cache_key
from compact.core.summary.summary import StructuredSummary

CALL = Message("assistant", None, (ToolCall("c1", "bash", "{}"),), id="m2")
SPAN = (Message("user", "look", id="m1"), CALL, Message("tool", "done", tool_call_id="c1", id="m3"))
REQUEST = SummaryRequest(messages=SPAN, previous=None, max_tokens=90, count_text=len)


def key(request: SummaryRequest, **named: str) -> object:
    return create_summary_cache_key(request, **{"model": "m", "prompt_version": "1", **named})  # type: ignore[arg-type]


def test_a_remembered_summary_is_used_for_the_same_request_only() -> None:
    assert key(replace(REQUEST, session_id="another")) == key(REQUEST)
    previous = StructuredSummary(narrative="We went on.")
    other_previous = StructuredSummary(narrative="We stopped.")
    requests = (
        REQUEST,
        replace(REQUEST, messages=SPAN[:2]),
        replace(REQUEST, span=SPAN[:1]),
        replace(REQUEST, span=SPAN[1:]),
        replace(REQUEST, previous=previous),
        replace(REQUEST, previous=other_previous),
        replace(REQUEST, note="short"),
        replace(REQUEST, focus="refunds"),
        replace(REQUEST, focus="billing"),
        replace(REQUEST, form="brief"),
        replace(REQUEST, max_tokens=91),
    )
    keys = [key(request) for request in requests]
    keys += [key(REQUEST, model="n"), key(REQUEST, prompt_version="2"), key(REQUEST, tenant_id="ours")]
    assert len(set(keys)) == len(keys)
    assert key(replace(REQUEST, span=SPAN, messages=SPAN[:1])) == key(REQUEST), "what it stands for is what counts"


def test_a_message_is_another_one_by_any_of_its_parts() -> None:
    changed = (
        replace(SPAN[2], id="m9"),
        replace(SPAN[2], role="user"),
        replace(SPAN[2], name="bash"),
        replace(SPAN[2], tool_call_id="c9"),
        replace(SPAN[2], content="not done"),
        replace(CALL, tool_calls=(ToolCall("c1", "bash", '{"a": 1}'),)),
    )
    hashes = {compute_content_hash([message]) for message in (*SPAN, *changed)}
    assert len(hashes) == len(SPAN) + len(changed)
    assert compute_content_hash(SPAN, "a") != compute_content_hash(SPAN, "b")
    assert compute_content_hash([Message("user", "\ud800", id="m1")]) != compute_content_hash(SPAN[:1])


def test_a_request_knows_the_groups_of_its_history_if_it_has_an_index() -> None:
    assert REQUEST.groups == ()
    index = SpanIndex.of(SPAN, SPAN)
    assert [group.indices for group in replace(REQUEST, index=index).groups] == [(0,), (1, 2)]


def test_the_old_word_for_the_form_warns_where_it_is_used() -> None:
    with pytest.warns(DeprecationWarning, match=r"SummaryRequest\.form") as caught:
        assert REQUEST.strategy == "task_state"
    assert caught[0].filename == __file__
