"""Every secret of the corpus disappears in every context; every look-alike stays."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from compact.redaction import MARK, Redactor

CONTEXTS: dict[str, Callable[[str], str]] = {
    "bare": lambda text: text,
    "json": lambda text: json.dumps({"note": text, "n": 1}),
    "nested json": lambda text: json.dumps({"arguments": json.dumps({"command": text})}),
    "prose": lambda text: f"I ran it twice and saw: {text} in the log.",
    "shell": lambda text: f'$ echo "{text}" && VALUE={text} ./run --fast',
    "middle of a log": lambda text: f"2025-01-01 INFO started\n{text}\n2025-01-01 INFO done ünïcödé",
}


def leaked(parts: tuple[str, ...], output: str) -> bool:
    """True if a part is still there, plain or with JSON's escapes."""
    return any(part in output or json.dumps(part)[1:-1] in output for part in parts)


def test_every_secret_disappears(secrets, record_property) -> None:
    redactor = Redactor()
    failures = [
        f"{secret.name} / {context} / {how.__name__}: {how(wrap(secret.text))[:200]!r}"
        for secret in secrets
        for context, wrap in CONTEXTS.items()
        for how in (redactor.text, redactor.value)
        if leaked(secret.parts, how(wrap(secret.text)))
    ]
    record_property("secret_shapes", len(secrets))
    record_property("secret_checks", len(secrets) * len(CONTEXTS) * 2)
    assert len(secrets) >= 60
    assert not failures, f"{len(failures)} leaks among {len(secrets)} secrets:\n" + "\n".join(failures)


def test_twice_is_once(secrets) -> None:
    redactor = Redactor()
    for secret in secrets:
        for wrap in CONTEXTS.values():
            text, value = redactor.text(wrap(secret.text)), redactor.value(wrap(secret.text))
            assert (redactor.text(text), redactor.value(value)) == (text, value), secret.name


def test_every_lookalike_stays(lookalikes, record_property) -> None:
    redactor = Redactor()
    changed = [f"{text!r} became {redactor.text(text)!r}" for text in lookalikes if redactor.text(text) is not text]
    record_property("lookalikes", len(lookalikes))
    assert len(set(lookalikes)) >= 200
    assert not changed, f"{len(changed)} of {len(lookalikes)} changed:\n" + "\n".join(changed)


def test_lookalikes_stay_beside_each_other(lookalikes) -> None:
    text = "\n".join(lookalikes)
    assert Redactor().text(text) is text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("api_key=sk-abc123", "api_key=<REDACTED>"),  # S1's own example
        ("Api-Key : sk-abc123", "Api-Key : <REDACTED>"),
        ("password=hunter2", "password=<REDACTED>"),
        ("password: hunter2", "password: <REDACTED>"),
        ('"password": "hunter2", "user": "bob"', '"password": "<REDACTED>", "user": "bob"'),
        ("postgres://user:hunter2@host:5432/db", "postgres://user:<REDACTED>@host:5432/db"),
        ("Authorization: Bearer a1b2c3d4e5f6", "Authorization: Bearer <REDACTED>"),
        ("Set-Cookie: sid=a1b2c3d4; Path=/; Secure", "Set-Cookie: sid=<REDACTED>; Path=/; Secure"),
        ("Password=hunter2;Server=db", "Password=<REDACTED>;Server=db"),
        ("?access_token=a1b2c3d4e5&page=2", "?access_token=<REDACTED>&page=2"),
        ("login(user='bob', password='hunter2')", "login(user='bob', password='<REDACTED>')"),
        ("PASSWORD=hunter2\\nUSER=bob", "PASSWORD=<REDACTED>\\nUSER=bob"),
        ('password="it\\"s me", next=1', 'password="<REDACTED>", next=1'),
        ('password="cut off in the midd', 'password="<REDACTED> off in the midd'),
        ("DB_PASSWORD=" + "a1" * 600 + " next", "DB_PASSWORD=<REDACTED> next"),
        ("DB_PASSWORD=" + "é1" * 600 + " next", "DB_PASSWORD=<REDACTED> next"),
    ],
)
def test_only_the_secret_goes(text: str, expected: str) -> None:
    assert Redactor().text(text) == expected


def test_a_key_block_goes_whole_and_what_is_around_it_stays(secrets) -> None:
    block = next(secret.text for secret in secrets if secret.name == "pem openssh")
    assert Redactor().text(f"cat id\n{block}\n$ ls") == f"cat id\n{MARK}\n$ ls"


def test_a_head_without_a_key_takes_nothing_with_it() -> None:
    prose = (
        "-----BEGIN RSA PRIVATE KEY----- is the head. " + "CompactionPlanResultAndReportOfEverything goes on. " * 500
    )
    assert Redactor().text(prose) is prose


def test_texts_that_are_no_valid_unicode_pass() -> None:
    assert Redactor().text("\ud800 password=hunter2 \udfff") == "\ud800 password=<REDACTED> \udfff"
    assert Redactor().text("\ud800 fine") == "\ud800 fine"
