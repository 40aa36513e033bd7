"""The user's patterns and callback."""

from __future__ import annotations

import builtins
import time
from typing import Any

import pytest

from compact.core.errors import ConfigError
from compact.extras import install_line
from compact.redaction import MARK, Redactor

S1_PATTERNS = (r"(?i)api[_-]?key\s*[:=]\s*\S+", r"(?i)password\s*[:=]\s*\S+")


@pytest.fixture
def _re2() -> None:
    pytest.importorskip("re2")


@pytest.mark.usefixtures("_re2")
class TestPatterns:
    def test_a_match_goes_whole_a_group_named_secret_alone(self) -> None:
        assert Redactor(patterns=[r"ACME-\d+"]).text("see ACME-42 and ACME-43.") == f"see {MARK} and {MARK}."
        assert Redactor(patterns=[r"badge (?P<secret>\d+)"]).text("badge 007, badge x") == f"badge {MARK}, badge x"

    def test_the_default_rules_go_on(self) -> None:
        assert Redactor(patterns=["ACME"]).text("ACME password=hunter2") == f"{MARK} password={MARK}"

    def test_the_patterns_of_the_specification_leave_the_name(self) -> None:
        redactor = Redactor(patterns=S1_PATTERNS)
        assert redactor.text("api_key=sk-abc123") == "api_key=<REDACTED>"
        assert redactor.text(redactor.text("api_key=sk-abc123")) == "api_key=<REDACTED>"
        assert redactor.text("password: str") == MARK  # whoever asks for it gets it

    def test_characters_count_not_bytes(self) -> None:
        assert Redactor(patterns=["é.é"]).text("ääéüéä \ud800") == f"ää{MARK}ä \ud800"

    def test_marks_are_not_redacted_again(self) -> None:
        redactor = Redactor(patterns=[r"\w+"])
        assert redactor.text("one two") == f"{MARK} {MARK}"
        assert redactor.text(redactor.text("one two")) == f"{MARK} {MARK}"
        assert redactor.text("<REDACTED: callback failed>") == "<REDACTED: callback failed>"

    def test_touching_matches_become_one_mark(self) -> None:
        assert Redactor(patterns=[r"\d"]).text("pin 1234.") == f"pin {MARK}."

    def test_empty_matches_are_none(self) -> None:
        assert Redactor(patterns=["x*"]).text("axxb") == f"a{MARK}b"

    def test_numbers_and_short_keys_are_read_too(self) -> None:
        redactor = Redactor(patterns=[r"\b\d{16}\b", r"^emp$"])
        assert redactor.value({"card": 4111111111111111, "emp": 1}) == {"card": MARK, MARK: 1}

    def test_a_pattern_made_to_hang_returns_at_once(self) -> None:
        redactor = Redactor(patterns=["(a+)+$"])
        started = time.process_time()
        text = "a" * 100_000 + "!"
        assert redactor.text(text) is text
        assert time.process_time() - started < 5

    @pytest.mark.parametrize("pattern", [r"(a)\1", r"x(?=y)", r"(?<=x)y", "(", "[z-a]", "\ud800"])
    def test_a_pattern_that_re2_cannot_take_is_a_config_error(self, pattern: str, capfd: Any) -> None:
        with pytest.raises(ConfigError) as caught:
            Redactor(patterns=["fine", pattern])
        assert caught.value.field == "redaction.patterns[1]"
        assert repr(pattern) in caught.value.message
        assert "RE2" in caught.value.hint
        assert capfd.readouterr().err == ""


def test_without_re2_only_own_patterns_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    real_import = builtins.__import__

    def without_re2(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "re2":
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_re2)
    assert Redactor().text("password=hunter2") == "password=<REDACTED>"
    with pytest.raises(ConfigError, match="google-re2") as caught:
        Redactor(patterns=["x"])
    assert install_line("redaction") in caught.value.hint
    assert caught.value.field == "redaction.patterns[0]"


def test_the_callback_comes_last() -> None:
    seen: list[str] = []

    def callback(text: str) -> str:
        seen.append(text)
        return text.replace("Bob", "<PERSON>")

    redactor = Redactor(callback=callback)
    assert redactor.text("Bob: password=hunter2") == "<PERSON>: password=<REDACTED>"
    assert seen == ["Bob: password=<REDACTED>"]
    assert redactor.value({"who": '{"name": "Bob"}'}) == {"who": '{"name": "<PERSON>"}'}
    untouched = {"who": "Eve"}
    assert redactor.value(untouched) is untouched


def _raises(text: str) -> str:
    raise RuntimeError(text)


@pytest.mark.parametrize("callback", [_raises, lambda text: None, lambda text: 5])
def test_a_callback_that_fails_leaks_nothing(callback: Any) -> None:
    redactor = Redactor(callback=callback)
    assert redactor.text("Bob was here") == "<REDACTED: callback failed>"
    assert "Bob" not in str(redactor.value({"who": ["Bob"]}))
