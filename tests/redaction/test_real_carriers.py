"""The second corpus, and the two rates that matter: secrets that are caught, and look-alikes that are not."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable

import pytest

from compact.redaction import MARK, Redactor
from redaction.real_carriers import Case, lookalike_cases, secret_cases

LEAST_CAUGHT, MOST_FALSE = 0.97, 0.01
SEEDS = range(3)


def is_leaked(case: Case, clean: str) -> bool:
    return any(secret in clean or json.dumps(secret)[1:-1] in clean for secret in case.secrets)


WAYS: dict[str, Callable[[str], str]] = {
    "text": lambda text: Redactor().text(text),
    "value": lambda text: str(Redactor().value(text)),
    "tool result in JSON": lambda text: json.dumps(Redactor().value({"content": json.dumps({"stdout": text})})),
    "among other lines": lambda text: Redactor().text(f"$ cat file\n{text}\n$ ls -la\ntotal 4\n"),
}


@pytest.mark.parametrize("way", WAYS)
def test_almost_every_secret_is_caught(way: str, record_property) -> None:
    cases = [case for seed in SEEDS for case in secret_cases(seed)]
    missed = sorted({case.name for case in cases if is_leaked(case, WAYS[way](case.text))})
    caught = 1 - len(missed) / len(secret_cases())
    record_property("caught", round(caught, 4))
    print(f"redaction, {way}: {caught:.1%} of {len(secret_cases())} shapes are caught")  # noqa: T201
    assert len(secret_cases()) >= 190
    assert caught >= LEAST_CAUGHT, f"missed: {', '.join(missed)}"


def test_almost_no_lookalike_is_redacted(record_property) -> None:
    redactor = Redactor()
    changed = [case.text for seed in SEEDS for case in lookalike_cases(seed) if redactor.text(case.text) != case.text]
    false_share = len(changed) / (len(SEEDS) * len(lookalike_cases()))
    record_property("false", round(false_share, 4))
    print(f"redaction: {false_share:.1%} of {len(lookalike_cases())} look-alikes are redacted")  # noqa: T201
    assert len({case.text for case in lookalike_cases()}) >= 350
    assert false_share <= MOST_FALSE, "\n".join(changed)


def test_what_is_redacted_once_stays_as_it_is() -> None:
    redactor = Redactor()
    for case in secret_cases():
        clean = redactor.text(case.text)
        assert redactor.text(clean) == clean, case.name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("password: |\n  walnut pigeon copper\nhost: db", f"password: |\n  {MARK}\nhost: db"),
        ("password: |\n  hunter2\n  second5line\n\nhost: db", f"password: |\n  {MARK}\n  {MARK}\n\nhost: db"),
        ("kind: Secret\ndata:\n  any: aGVsbG8=\ntype: Opaque", f"kind: Secret\ndata:\n  any: {MARK}\ntype: Opaque"),
        ("data:\n  any: aGVsbG8=\nkind: Secret", f"data:\n  any: {MARK}\nkind: Secret"),
        (
            '{"kind":"Secret","data":{"a":"eA==","b":"eQ=="}}',
            f'{{"kind":"Secret","data":{{"a":"{MARK}","b":"{MARK}"}}}}',
        ),
        ("kind: ConfigMap\ndata:\n  any: aGVsbG8=", "kind: ConfigMap\ndata:\n  any: aGVsbG8="),
        ("data:\n  a: b\n---\nkind: Secret\ndata:\n  c: d", f"data:\n  a: b\n---\nkind: Secret\ndata:\n  c: {MARK}"),
        ('variable "db_password" {\n  default = "hunter2"\n}', f'variable "db_password" {{\n  default = "{MARK}"\n}}'),
        ('variable "db_name" {\n  default = "hunter2"\n}', 'variable "db_name" {\n  default = "hunter2"\n}'),
        ("curl -u :hunter2x https://a.b", f"curl -u :{MARK} https://a.b"),
        ("redis-cli -a hunter2x ping", f"redis-cli -a {MARK} ping"),
        ("Das Passwort lautet hunter2x.", f"Das Passwort lautet {MARK}."),
        ("Le mot de passe est hunter2x.", f"Le mot de passe est {MARK}."),
        ("пароль: hunter2x", f"пароль: {MARK}"),
        ("密码：hunter2x", f"密码：{MARK}"),
        ("db:5432:orders:app:hunter2x\nnext", f"db:5432:orders:app:{MARK}\nnext"),
    ],
)
def test_only_the_secret_goes(text: str, expected: str) -> None:
    assert Redactor().text(text) == expected


def test_names_in_other_languages_count_in_data_too() -> None:
    data = {"Kennwort": "x y z", "mot_de_passe": "x", "clé_api": "x", "senha": "x", "Schlüssel": "x", "mots": "x"}
    clean = Redactor().value(data)
    assert [name for name, value in clean.items() if value == MARK] == ["Kennwort", "mot_de_passe", "clé_api", "senha"]


def test_a_secret_in_base64_goes() -> None:
    encoded = base64.b64encode(b"DB_HOST=db.example.org\nDB_PASSWORD=walnut7pigeon\n").decode()
    assert encoded not in Redactor().text(f"config: {encoded}")


def test_a_picture_and_a_digest_in_base64_stay() -> None:
    picture = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    for text in (picture, f"data:image/png;base64,{picture}", "sha512-" + "Zm9v" * 21 + "Zm8="):
        assert Redactor().text(text) is text
