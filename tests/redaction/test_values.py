"""Nested data and messages: names count, JSON stays JSON, the input stays as it was."""

from __future__ import annotations

import json
from collections import namedtuple
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from compact.core.messages.message import Message, ToolCall
from compact.redaction import MARK, Redactor, redactor, spans
from compact.redaction.assignments import ASCII_NEEDLES
from compact.redaction.carriers import CARRIER_NEEDLES
from compact.redaction.shapes import SHORTEST_SHAPE
from compact.redaction.spans import find_secrets

SECRET_NAMES = (
    "password", "Password", "db_password", "PGPASSWORD", "passwd", "pwd", "passphrase", "api_key", "apiKey", "API-KEY",
    "x-api-key", "OPENAI_API_KEY", "authorization", "Authorization", "Proxy-Authorization", "client_secret",
    "clientSecret", "secret", "secretKey", "aws_secret_access_key", "AccountKey", "token", "access_token",
    "accessToken", "refresh_token", "id_token", "authToken", "X-Auth-Token", "private_key", "credentials", "cookie",
    "Set-Cookie", "cookies", "secrets", "api_keys", "signing_key", "GITHUB_PAT", "password2",
)  # fmt: skip
OTHER_NAMES = (
    "max_tokens", "token_count", "tokens", "completion_tokens", "prompt_tokens", "total_tokens", "cached_tokens",
    "max_completion_tokens", "tokenizer", "token_type", "token_limit", "bos_token", "eos_token", "next_page_token",
    "key", "keys",
    "primary_key", "public_key", "cache_key", "password_policy", "password_min_length", "secret_name", "api_key_id",
    "author", "authors", "passed", "passenger", "monkey", "session_id", "name", "path", "pat",
)  # fmt: skip

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize("name", SECRET_NAMES)
@pytest.mark.parametrize("value", ["x", "two words", 12345, ["a"], {"a": 1}, b"raw"])
def test_whatever_is_under_the_name_of_a_secret_goes(name: str, value: object) -> None:
    assert Redactor().value({name: value, "other": 1}) == {name: MARK, "other": 1}


@pytest.mark.parametrize("name", OTHER_NAMES)
@pytest.mark.parametrize("value", ["plain", 512, ["a"], {"a": 1}])
def test_other_names_are_no_reason(name: str, value: object) -> None:
    data = {name: value}
    assert Redactor().value(data) is data


@pytest.mark.parametrize("nothing", [None, True, False, "", [], {}, MARK])
def test_there_is_nothing_to_hide_in_nothing(nothing: object) -> None:
    data = {"password": nothing}
    assert Redactor().value(data) is data


def test_a_schema_says_what_a_password_is_and_is_none() -> None:
    schema = {"properties": {"password": {"type": "string", "description": "of the user", "minLength": 8}}}
    assert Redactor().value(schema) is schema
    with_default = {"properties": {"password": {"type": "string", "default": "hunter2"}}}
    assert Redactor().value(with_default)["properties"]["password"] == {"type": "string", "default": MARK}
    assert Redactor().value({"password": {"type": "string", "value": "x"}}) == {"password": MARK}


def test_pairs_and_flags_name_their_values_too() -> None:
    value = {"env": [{"name": "DB_PASSWORD", "value": "x"}, {"name": "HOST", "value": "db"}], "args": ["--token", "x"]}
    assert Redactor().value(value) == {
        "env": [{"name": "DB_PASSWORD", "value": MARK}, {"name": "HOST", "value": "db"}],
        "args": ["--token", MARK],
    }


def test_hints_need_a_value_that_looks_the_part() -> None:
    assert Redactor().value({"auth": "dXNlcjpodW50ZXIy", "pass": "hunter2"}) == {"auth": MARK, "pass": MARK}
    harmless = {"auth": "oauth2", "pass": True, "passes": 3}
    assert Redactor().value(harmless) is harmless


def test_json_inside_strings_is_read_and_written_like_it_was() -> None:
    redactor = Redactor()
    assert redactor.value('{"token":"x","n":1}') == '{"token":"<REDACTED>","n":1}'
    assert redactor.value('{"token": "x", "e": "é"}') == '{"token": "<REDACTED>", "e": "é"}'
    assert redactor.value('{\n  "token": "x"\n}') == '{\n  "token": "<REDACTED>"\n}'
    assert redactor.value('{"a": "{\\"password\\": \\"x\\"}"}') == json.dumps({"a": json.dumps({"password": MARK})})
    assert json.loads(redactor.value('{"password": "x", "big": 1e999}')) == {"password": MARK, "big": "1e999"}
    assert redactor.value('{"password": "hunter2"') == '{"password": "<REDACTED>"'
    same = '{ "max_tokens" :  5, "x": [1,2] }'
    assert redactor.value(same) is same


def test_escapes_hide_nothing() -> None:
    hidden = '{"\\u0070assword": "x", "url": "https:\\/\\/hooks.slack.com\\/services\\/%s"}' % ("T0AB12CD3/" * 3)
    clean = json.loads(Redactor().value(hidden))
    assert clean["password"] == MARK
    assert clean["url"] == "https://hooks.slack.com/services/" + MARK


@pytest.mark.parametrize(
    "text",
    [
        '{"password": "hunter2x", "password": null}',
        '{"note": "password=hunter2x", "note": "token"}',
        '{"a": {"api_key": "hunter2x", "api_key": ""}, "b": 1}',
        '{"a": 1, "a": 2, "\\u0070assword": "hunter2x"}',
        '{"a": 1, "a": "pass\\u0077ord=hunter2x", "a": 3}',
    ],
)
def test_a_name_that_comes_twice_hides_nothing(text: str) -> None:
    assert "hunter2x" not in Redactor().value(text)
    assert "hunter2x" not in str(Redactor().value({"content": text}))


def test_secrets_in_keys_go_and_no_entry_is_lost() -> None:
    first, second = ("ghp_" + "a1B2c3D4e5" * 4, "ghp_" + "f6G7h8I9j0" * 4)
    clean = Redactor().value({first: 1, second: 2})
    assert sorted(clean.values()) == [1, 2]
    assert first not in clean
    assert second not in clean


def test_containers_keep_their_kind() -> None:
    pair = namedtuple("pair", "user note")
    data = (
        pair("bob", "password=hunter2"),
        {"password=hunter2"},
        MappingProxyType({"token": "x"}),
        b"password=hunter2",
    )
    clean = Redactor().value(data)
    assert clean == (
        pair("bob", "password=<REDACTED>"),
        {"password=<REDACTED>"},
        {"token": MARK},
        b"password=<REDACTED>",
    )
    assert isinstance(clean[0], pair)


@dataclass(frozen=True, slots=True)
class Connection:
    host: str
    password: str


class Model:
    def __init__(self, **fields: Any) -> None:
        self.fields = fields

    def model_dump(self) -> dict[str, Any]:
        return self.fields


class Unprintable:
    def __str__(self) -> str:
        raise RuntimeError("no")


def test_objects_are_read_through_their_own_dump() -> None:
    redactor = Redactor()
    original = Connection("db", "hunter2")
    assert redactor.value(original) == Connection("db", MARK)
    assert original.password == "hunter2"
    assert redactor.value([Model(token="x")]) == [{"token": MARK}]
    assert redactor.value(ValueError("password=hunter2")) == "password=<REDACTED>"
    assert redactor.value(Unprintable()) == "<REDACTED: unreadable object>"
    for harmless in (Model(a=1), datetime(2025, 1, 1, tzinfo=UTC), Connection("db", "")):
        assert redactor.value(harmless) is harmless


def test_loops_and_depth_end() -> None:
    loop: list[Any] = ["password=hunter2"]
    loop += [loop, loop]
    assert Redactor().value(loop)[0] == "password=<REDACTED>"
    deep: Any = "password=hunter2"
    for _ in range(500):
        deep = [deep]
    assert "hunter2" not in str(Redactor().value(deep))
    assert Redactor().value("[" * 100_000) == "[" * 100_000


def test_a_message_is_copied_with_everything_it_carries() -> None:
    message = Message(
        "assistant",
        content=[{"type": "text", "text": "api_key=sk-abc123"}],
        tool_calls=[ToolCall("call_1", "login", '{"user": "bob", "password": "hunter2"}')],
        id="m1",
        meta={"token": "x", "protected": True},
        original={"content": "api_key=sk-abc123", "extra": [1]},
    )
    before = deepcopy(message)
    clean = Redactor().message(message)
    assert clean.content == ({"type": "text", "text": "api_key=<REDACTED>"},)
    assert json.loads(clean.tool_calls[0].arguments) == {"user": "bob", "password": MARK}
    assert clean.meta == {"token": MARK, "protected": True}
    assert clean.original == {"content": "api_key=<REDACTED>", "extra": [1]}
    assert (clean.id, clean.role, clean.tool_calls[0].id) == ("m1", "assistant", "call_1")
    assert (message, message.original) == (before, before.original)


def test_a_message_without_secrets_is_itself() -> None:
    message = Message("user", "hello", meta={"a": 1}, original={"role": "user", "content": "hello"})
    assert Redactor().message(message) is message


def test_a_text_that_a_message_holds_twice_is_the_same_object_in_both_places() -> None:
    """As it is read from a store: equal texts, which are two objects."""
    texts = ["".join(["nothing ", "is secret ", "in this text of a message"]) for _ in range(2)]
    message = Message("user", texts[0], original={"role": "user", "content": texts[1]})
    assert texts[0] is not texts[1]
    assert Redactor().message(message) is message


def test_an_object_that_cannot_be_asked_for_its_truth_is_read() -> None:
    class Several:
        """What arrays do."""

        def __bool__(self) -> bool:
            raise ValueError("the truth of several values is ambiguous")

        def __str__(self) -> str:
            return "api_key=sk-abc123"

    @dataclass
    class Holder:
        inner: object

    assert Redactor().value(Holder(Several())) == Holder("api_key=<REDACTED>")


def test_switched_off_it_touches_nothing() -> None:
    redactor = Redactor(enabled=False, patterns=["("], callback=lambda text: "x")
    data = {"password": "hunter2"}
    assert redactor.value(data) is data
    assert redactor.text("password=hunter2") == "password=hunter2"
    assert not redactor.is_enabled
    assert Redactor().is_enabled


PLANTED = "ghp_" + "Zq7Xk2Vw9L" * 4


@given(json_values, st.data())
def test_a_planted_secret_never_survives(value: Any, data: st.DataObject) -> None:
    before = data.draw(st.text(max_size=20))
    # Anything may stand before it save what makes it part of a longer word.
    planted = f"{before} {PLANTED} {data.draw(st.text(max_size=20))}"
    tree = {"a": value, "b": [value, {"c": planted}], planted: json.dumps({"d": planted}), "password": PLANTED}
    snapshot = deepcopy(tree)
    redactor = Redactor()
    clean = redactor.value(tree)
    assert PLANTED not in repr(clean)
    assert tree == snapshot
    assert redactor.value(clean) is clean or redactor.value(clean) == clean


@given(json_values)
def test_redacting_twice_is_redacting_once(value: Any) -> None:
    redactor = Redactor()
    snapshot = deepcopy(value)
    clean = redactor.value(value)
    assert redactor.value(clean) == clean
    assert value == snapshot


NOISE = st.lists(
    st.sampled_from(
        ["password", "token", "key", "api_", "=", ": ", '"', "'", "\\", "{", "}", "<", ">", "hunter2", "a1B2c3", "é",
         " ", "\n", "://", "@", "-----BEGIN PRIVATE KEY-----", "cookie: ", "a=bcde;", "Bearer ", "<REDACTED>", "sk-",
         "value", ","]
    ),
    max_size=14,
).map("".join)  # fmt: skip


@given(NOISE)
@example(
    "-----BEGIN PRIVATE KEY-----passwordpassword-----BEGIN PRIVATE KEY-----passwordpasswordapi_passwordpasswordpassword"
)
@example("-----BEGIN PRIVATE KEY-----cookie: passwordpasswordpassworda=bcde;password")
def test_twice_is_once_in_scrambled_text_too(text: str) -> None:
    once = Redactor().text(text)
    assert Redactor().text(once) == once


EVENTS_REDACTOR = Redactor()


@given(st.dictionaries(st.text(max_size=12) | st.sampled_from(SECRET_NAMES), json_values, max_size=4))
@example({"model": "gpt-4o", "message": "password=hunter2"})
def test_an_event_is_redacted_as_any_data_is_however_often_its_texts_come(data: dict[str, Any]) -> None:
    first, again = EVENTS_REDACTOR.event(deepcopy(data)), EVENTS_REDACTOR.event(deepcopy(data))
    assert first == again == Redactor().value(data)


def test_what_is_known_of_the_texts_of_events_is_bounded_and_holds_no_secret() -> None:
    redactor = Redactor()
    for number in range(5_000):
        assert redactor.event({"id": f"call-{number}", "note": "password=hunter2"})["note"] == f"password={MARK}"
    known = redactor._known_clean
    assert 0 < len(known) <= 2_048
    assert not any("hunter2" in text for text in known)


def test_a_callback_is_asked_for_every_text_of_every_event() -> None:
    seen: list[str] = []
    redactor = Redactor(callback=lambda text: seen.append(text) or text)
    for _ in range(2):
        redactor.event({"model": "gpt-4o"})
    assert seen.count("gpt-4o") == 2


@given(st.text("abcXYZ019", max_size=SHORTEST_SHAPE - 1))
@example("eyJhbGciOiJIUzI1NiI")
def test_no_rule_takes_a_short_word(word: str) -> None:
    assert find_secrets(word.encode()) == []


def test_ids_in_an_event_are_not_searched_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def replaced_and_noted(text: str, patterns: object = ()) -> str:
        read.append(text)
        return text

    monkeypatch.setattr(redactor, "replaced", replaced_and_noted)
    event = {"event": "compact.content_summarized", "message_ids": [f"m{number}" for number in range(1_000)]}
    assert Redactor().event(event) is event
    assert read == ["compact.content_summarized"]


@pytest.mark.parametrize("needle", [*ASCII_NEEDLES, *CARRIER_NEEDLES])
def test_the_quick_look_at_a_short_text_knows_every_needle(needle: bytes) -> None:
    assert spans.ANY_NEEDLE.search(b"... " + needle + b" ...")
