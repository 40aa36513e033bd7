"""A secret at the head of whose column stands its name: statements of SQL, CSV, tables of Markdown."""

from __future__ import annotations

import pytest

from compact.redaction import MARK, Redactor


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "INSERT INTO users (email, password) VALUES ('a@b.de', 'walnut'), ('c', 'it''s me');",
            f"INSERT INTO users (email, password) VALUES ('a@b.de', '{MARK}'), ('c', '{MARK}');",
        ),
        (
            "insert into t (password, n) values ('walnut', 1);\ninsert into t (n) values ('walnut');",
            f"insert into t (password, n) values ('{MARK}', 1);\ninsert into t (n) values ('walnut');",
        ),
        ("insert into t (name, token) values ('a', 'words')", "insert into t (name, token) values ('a', 'words')"),
        (
            "INSERT INTO t (`at`, `password`) VALUES (now(), 'walnut')",
            f"INSERT INTO t (`at`, `password`) VALUES (now(), '{MARK}')",
        ),
        (
            "REPLACE INTO t (pwd) VALUES ('walnut'); INSERT IGNORE INTO t (pwd) VALUES ('walnut')",
            f"REPLACE INTO t (pwd) VALUES ('{MARK}'); INSERT IGNORE INTO t (pwd) VALUES ('{MARK}')",
        ),
        ("go into t (password) values ('walnut')", "go into t (password) values ('walnut')"),
        ("id\tsecret\n1\thunter2x", f"id\tsecret\n1\t{MARK}"),
        ("user,password\nbob,hunter2x\n\nhunter3x", f"user,password\nbob,{MARK}\n\nhunter3x"),
        ('user;password;n\nbob;"hunter2x";1\nann;none;2', f'user;password;n\nbob;"{MARK}";1\nann;none;2'),
        ("user\tpassword\nbob\thunter2x", f"user\tpassword\nbob\t{MARK}"),
        (
            "| user | password |\n|---|---|\n| bob | hunter2x |\nhunter3x",
            f"| user | password |\n|---|---|\n| bob | {MARK} |\nhunter3x",
        ),
        ("user,password\nbob,hunter2x,more", "user,password\nbob,hunter2x,more"),
        ("name,password_policy\nbob,hunter2x", "name,password_policy\nbob,hunter2x"),
    ],
)
def test_only_the_column_of_the_secret_goes(text: str, expected: str) -> None:
    assert Redactor().text(text) == expected


def test_a_statement_that_is_cut_off_ends_there() -> None:
    for text in ("insert into t (password) values (", "insert into t (password) values ('walnut", "user,password\n"):
        assert Redactor().text(text) == text
