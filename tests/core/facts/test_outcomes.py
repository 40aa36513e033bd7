"""How a tool call went is read off its result; code, listings and reports that speak of errors are no failures."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compact.core.facts.outcomes import failure_of, tool_uses
from compact.core.facts.text import CUT_MARK, cut_line
from compact.core.messages.message import Message, ToolCall
from numbered import call

BASH = call("bash", command="make test")
READ = call("Read", file_path="src/a.py")


def failure_line(result: str, used: ToolCall) -> str:
    return failure_of(Message("tool", result), used)


FAILED = [
    ("Exit code 2\nerror: unexpected argument '-C' found\n\nUsage: rt", "error: unexpected argument '-C' found"),
    (
        "<returncode>1</returncode>\n<output>\nTraceback (most recent call last):\n  File\nKeyError: 'x'",
        "KeyError: 'x'",
    ),
    ('{"exit_code": 3, "stderr": ""}', "exit 3"),
    ("Process exited with code 1\nOutput:\nrg: apps: No such file or directory", "rg: apps: No such file or directory"),
    ("Error: 503 Service Unavailable", "Error: 503 Service Unavailable"),
    ("fatal: not a git repository", "fatal: not a git repository"),
    ("src/a.ts(3,5): error TS2304: Cannot find name 'x'.", "src/a.ts(3,5): error TS2304: Cannot find name 'x'."),
    ("main.c:3:5: error: expected ';'", "main.c:3:5: error: expected ';'"),
    ("Exit code 1\n# app\nmain.go:4:2: undefined: limit", "main.go:4:2: undefined: limit"),
    ("bash: gti: command not found", "bash: gti: command not found"),
    ("=== RUN TestA\n--- FAIL: TestA (0.00s)", "--- FAIL: TestA (0.00s)"),
    ("3 failed, 10 passed in 1.2s", "3 failed, 10 passed in 1.2s"),
    ("[lint] $ ruff\n[lint] ERROR task failed", "[lint] ERROR task failed"),
    ("Exit code 143\nCommand timed out after 2m 0s", "Command timed out after 2m 0s"),
    ("panic: runtime error: index out of range", "panic: runtime error: index out of range"),
    ("npm error command sh -c tsc", "npm error command sh -c tsc"),
    ('{"error": "no such order"}', '{"error": "no such order"}'),
    ("<tool_use_error>String to replace not found in file.", "<tool_use_error>String to replace not found in file."),
    ("Hunk #1 FAILED at 711.", "Hunk #1 FAILED at 711."),
    ("java.lang.IllegalStateException: closed", "java.lang.IllegalStateException: closed"),
]

WENT_WELL = [
    "",
    "ok",
    "Exit code 0\nerror: this line was printed by a test that expects it",
    "<returncode>0</returncode>\n<output>\nTraceback (most recent call last):\n</output>",
    "12 passed, 0 failed",
    "Found 0 errors.",
    "Checked 290 files. No errors",
    "$ biome check --error-on-warnings\nChecked 290 files in 106ms",
    "5ae3d969 review feedback: add partial failure test",
    "frontend/src/lib/error-messages.ts",
    "   132→\t\tthrow new Error('no results');",
    "78-func Init(sessionID string) error {",
    "cmd/cli/main.go:99:func Run() error {",
    "class NotFound(Exception):\n    pass",
    "try:\n    run()\nexcept Exception as error:\n    raise\n",
    "error = None\nerrors = []\nif error:\n",
    "interface State {\n  error: Error;\n  panic: boolean,\n}",
    "     7→error: the first line of a log\n     8→fatal: the second",
    'console.error("Failed to load", err);',
    '{"Error": "", "name": "x"}',
    '{"error": null}',
    "import sys\nsys.exit(1)",
    "#!/bin/sh\nset -e\nexit 1  # as in the manual",
    "We talk about errors here. Nothing went wrong.",
]


@pytest.mark.parametrize(("result", "line"), FAILED, ids=[line for _, line in FAILED])
def test_a_failure_is_told_by_its_most_telling_line(result: str, line: str) -> None:
    assert failure_line(result, BASH) == line


@pytest.mark.parametrize("result", WENT_WELL)
def test_what_only_speaks_of_errors_went_well(result: str) -> None:
    assert failure_line(result, BASH) == ""


@pytest.mark.parametrize("result", [*WENT_WELL, "log of the day\n" + "\n".join(line for _, line in FAILED)])
def test_what_is_read_may_say_anything(result: str) -> None:
    assert failure_line(result, READ) == ""


def test_a_reading_that_failed_says_so_at_once() -> None:
    told = "ENOENT: no such file or directory, open 'src/a.py'"
    assert failure_line(told, READ) == told
    assert failure_line("<tool_use_error>File does not exist.</tool_use_error>", READ)


def test_only_the_ends_of_a_long_result_tell_how_it_went() -> None:
    log = [f"line {n}" for n in range(500)]
    assert failure_line("\n".join([*log[:250], "error: in the middle of a log", *log[250:]]), BASH) == ""
    assert failure_line("\n".join([*log, "error: at the end"]), BASH) == "error: at the end"


def test_a_failure_without_a_word_is_told_by_its_number() -> None:
    assert failure_line("<returncode>1</returncode>\n<output>\n</output>", BASH) == "exit 1"


@given(st.text(max_size=400), st.sampled_from([BASH, READ, ToolCall("c", "x", "no json")]))
def test_the_line_told_is_in_the_result(result: str, used: ToolCall) -> None:
    told = failure_line(result, used)
    assert told.removesuffix(CUT_MARK) in result or told.startswith("exit ")


def test_long_lines_are_cut_between_words() -> None:
    line = "error: " + "port 8080 " * 50
    cut = failure_line(line, BASH)
    assert cut.endswith(CUT_MARK)
    assert len(cut) <= 240 + len(CUT_MARK)
    assert set(cut.removesuffix(CUT_MARK).split()) == {"error:", "port", "8080"}
    assert cut_line("x" * 241) == "x" * 240 + CUT_MARK
    assert cut_line("x" * 240) == "x" * 240


@pytest.mark.parametrize("unit", ["a", " ", "\n", "(", "a: ", "error ", "1 ", "error: 0", "\t→", "a.", "- [x"])
def test_no_result_takes_long(unit: str) -> None:
    result = unit * (1_000_000 // len(unit))
    began = time.process_time()
    failure_line(result, BASH)
    assert time.process_time() - began < 6.0


def test_calls_come_with_their_results_in_the_order_of_those() -> None:
    make, look, open_call = (ToolCall(i, "bash", f'{{"command": "{i} x"}}') for i in ("make", "look", "open"))
    messages = [
        Message("user", "go", id="m1"),
        Message("assistant", None, (make, look), id="m2"),
        Message("tool", "all there", tool_call_id="look", id="m3"),
        Message("tool", "error: no rule", tool_call_id="make", id="m4"),
        Message("assistant", None, (open_call,), id="m5"),
    ]
    uses = list(tool_uses(messages))
    assert [(use.place, use.ids, use.about.command, use.failure) for use in uses] == [
        (1, ("m2", "m3"), "look x", ""),
        (1, ("m2", "m4"), "make x", "error: no rule"),
    ]
    assert [use.call for use in uses] == [look, make]
