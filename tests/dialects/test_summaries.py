"""A summary is known by the plan that it belongs to, never by its text: in this process, in the next, and sent back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from compact import CompactConfig, CompactManager
from compact.dialects import DIALECTS
from compact.dialects.dialect import is_summary, mark_summary
from compact.dialects.translation import Translator
from compact.dialects.turns import CLOSING, OPENING
from compact.testing import WordTokenizer
from dialect_conversations import WRITERS, Step, Wire

TAGGED = "<COMPACT-SUMMARY v7> is the tag that a summary begins with.\n</COMPACT-SUMMARY>"
NAMES = tuple(WRITERS)
TURN_BASED = ("anthropic", "gemini", "converse", "vercel")


def steps(turns: int) -> list[Step]:
    """A conversation in which the model writes the tag, at the beginning and at the end."""
    said: list[Step] = []
    for turn in range(turns):
        text = TAGGED if turn in (0, turns - 1) else f"answer {turn} " + "word " * 30
        said.append(Step("user", f"question {turn} " + "word " * 10, number=2 * turn))
        said.append(Step("model", text, number=2 * turn + 1))
    return said


def write(name: str, said: list[Step]) -> list[Wire]:
    """A conversation in a dialect; texts alone are written as texts, as a summary is."""
    items = WRITERS[name](said)
    for item in items:
        content = item.get("content")
        if isinstance(content, list) and len(content) == 1 and content[0].keys() == {"type", "text"}:
            item["content"] = content[0]["text"]
    return items


@contextmanager
def open_manager(url: str = "memory:") -> Iterator[CompactManager]:
    config = CompactConfig(
        max_context_tokens=100_000,
        policy={"hard_cap_buffer": 10, "keep_recent_turns": 2},
        state={"url": url},
        storage={"adapter": "none"},
        telemetry={"exporter": "none"},
    )
    with CompactManager(config, tokenizer=WordTokenizer()) as manager:
        yield manager


def speakers(items: list[Wire], text: str) -> list[str]:
    """Who says a text in a prompt, each time that it is said."""
    found: list[str] = []
    for item in items:
        role = "assistant" if item["role"] == "model" else item["role"]
        found += [role] * json.dumps(item).count(json.dumps(text)[1:-1])
    return found


def summary_speaker(name: str) -> str:
    """Who says the summary: where the first turn is the user's, the user."""
    return "user" if name in TURN_BASED else "assistant"


@pytest.mark.parametrize("name", NAMES)
def test_a_reply_that_begins_with_the_tag_stays_the_assistants(name: str) -> None:
    """Also where items are written anew from the log: the caller has sent a prompt back, and its plan is undone."""
    history = write(name, steps(8))
    with open_manager() as manager:
        compacted = manager.manual_compact("s", history, dialect=name)
        assert manager.current_plan("s").summary
        assert speakers(compacted, TAGGED) == ["assistant"], "the newest reply is still there"
        assert speakers(compacted, "<COMPACT-SUMMARY v1>") == [summary_speaker(name)]
        manager.restore("s", 0)
        more = write(name, [Step("user", "and now?")])
        restored = manager.preflight("s", compacted + more, dialect=name)
    assert speakers(restored, TAGGED) == ["assistant", "assistant"]
    assert DIALECTS[name].check(restored) == ()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("mode", ["raw", "sent back"])
def test_the_next_process_knows_the_summary_and_the_reply_apart(name: str, mode: str, tmp_path: Path) -> None:
    """A session that is resumed says the same as one that goes on, whatever list it is given."""
    whole, url = steps(8), f"sqlite:///{tmp_path}/state.db"
    more = write(name, [Step("user", "and now?")])
    with open_manager(url) as manager, open_manager() as stays:
        compacted = manager.manual_compact("s", write(name, whole), dialect=name)
        assert stays.manual_compact("s", write(name, whole), dialect=name) == compacted
        following = (compacted if mode == "sent back" else write(name, whole)) + more
        wanted = stays.preflight("s", following, dialect=name)
    with open_manager(url) as resumed:
        prompt = resumed.preflight("s", following, dialect=name)
        assert len(resumed.history("s")) == len(whole) + 1, "the summary is not taken for something that was said"
    assert prompt == wanted
    assert speakers(prompt, "<COMPACT-SUMMARY v1>") == [summary_speaker(name)]
    assert speakers(prompt, TAGGED) == ["assistant"]


@pytest.mark.parametrize("name", TURN_BASED)
def test_only_the_marked_entry_is_a_summary(name: str) -> None:
    """Equal text, and a `meta` that a caller has set, make no summary of a message."""
    dialect = DIALECTS[name]
    reply: Wire = {"role": "assistant", "content": TAGGED}
    labelled = {**reply, "meta": {"label": "compact_summary", "protected": True}}
    (written,) = [block.items[0] for block in dialect.write([mark_summary(reply)])]
    assert written["role"] == "user"
    for entry in (reply, labelled):
        assert not is_summary(entry)
        (written,) = [block.items[0] for block in dialect.write([entry])]
        assert written["role"] in ("assistant", "model")


def test_gemini_adds_words_of_the_user_behind_a_summary_only() -> None:
    translator = Translator(DIALECTS["gemini"])
    reply: Wire = {"role": "assistant", "content": TAGGED}
    entries = [{"role": "user", "content": "a"}, reply]
    assert translator.items(entries)[-1]["role"] == "model"
    assert translator.items([reply, *entries], summary_place=0)[-1] == {"role": "user", "parts": [{"text": CLOSING}]}


def test_no_mark_stays_in_what_comes_back() -> None:
    """Entries that go on to the log are the session's own: the mark is for the dialect alone."""
    translator = Translator(DIALECTS["anthropic"])
    summary: Wire = {"role": "assistant", "content": TAGGED}
    entries = [summary, {"role": "user", "content": "next"}, {"role": "assistant", "content": TAGGED}]
    prompt = translator.items(entries, summary_place=0)
    back = translator.entries(prompt)
    assert back == entries
    assert back[0] is summary
    assert translator.items(back, summary_place=0) == prompt


@pytest.mark.parametrize("name", TURN_BASED)
def test_a_user_may_say_what_we_say_where_nothing_is_shown(name: str) -> None:
    """Our placeholder at the beginning is ours; the same words further on are the user's."""
    translator = Translator(DIALECTS[name])
    prompt = translator.items([{"role": "assistant", "content": "hello"}])
    assert OPENING in json.dumps(prompt[0])
    again: list[Any] = [*prompt, json.loads(json.dumps(prompt[0]))]
    assert [entry["role"] for entry in translator.entries(again)] == ["assistant", "user"]
