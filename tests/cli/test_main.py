"""The command as a whole: help, version, errors, pipes, exit codes."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from compact import __version__
from compact.cli import main as main_module
from compact.cli.main import app, main
from compact.core.errors import CompactError

COMMAND = str(Path(sys.executable).parent / "compact")


def test_version(process):
    """The entry point is installed and knows its version."""
    done = process("--version")
    assert (done.code, done.out) == (0, f"compact {__version__}\n")


def test_the_package_is_the_command(tmp_path):
    """`python -m compact` does what `compact` does, with its output, its errors and its exit codes."""
    for words, code in ((["--version"], 0), (["plan", "--nonsense"], 2)):
        ways = ([sys.executable, "-m", "compact"], [COMMAND])
        package, command = (subprocess.run([*way, *words], cwd=tmp_path, capture_output=True) for way in ways)
        assert (package.returncode, package.stdout, package.stderr) == (code, command.stdout, command.stderr)


def test_help_is_light():
    """Help imports neither the settings nor the token counter nor the drawing."""
    heavy = ("toktok", "pydantic", "genai_prices", "yaml", "rich")
    code = (
        "import sys\nfrom compact.cli.main import main\nassert main(['--help']) == 0\n"
        f"print([name for name in {heavy!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
    assert "Commands:" in done.stdout


@pytest.mark.parametrize("command", ["demo", "run", "plan", "inspect", "config", "doctor"])
def test_every_command_has_help(command):
    """Each explains itself in plain text, uncut."""
    shown = CliRunner().invoke(app, [command, "--help"])
    assert shown.exit_code == 0
    assert shown.output.isascii()
    assert "..." not in CliRunner().invoke(app, ["--help"]).output.replace("[ARGS]...", "")


@pytest.mark.parametrize(
    ("words", "usage", "argument"),
    [
        (["diff"], "compact diff [OPTIONS] SESSION [V1] [V2]", "  V1  "),
        (["import"], "compact import [OPTIONS] PATH...\n", "  PATH...  "),
        (["simulate"], "compact simulate [OPTIONS] PATH...\n", "  PATH...  "),
        (["config", "check"], "config check [OPTIONS] PATH\n", "  PATH  "),
    ],
)
def test_help_calls_arguments_what_they_are(words, usage, argument):
    """Neither braces nor the types of Python, which typer writes."""
    shown = CliRunner().invoke(app, [*words, "--help"]).output
    assert usage in shown
    assert argument in shown
    assert not re.search(r"[{<]\w+[}>]", shown)


def every_command():
    """Yield the words of every command, and those of commands in groups."""
    from typer.main import get_command

    for name, command in get_command(app).commands.items():
        yield from [[name, inner] for inner in getattr(command, "commands", ())] or [[name]]


@pytest.mark.parametrize("words", list(every_command()), ids=" ".join)
def test_help_says_in_words_what_a_number_may_be(words):
    shown = CliRunner().invoke(app, [*words, "--help"])
    assert shown.exit_code == 0
    assert not re.search(r"\bx[<>]|[<>]=", shown.output), "typer writes x>=1"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["inspect"], "the first is 0. [default: 0] "),
        (["show"], "Show the records of one plan version instead. --prompt"),
        (["recall"], "The most tokens to return. [default: 2000; at least 1]"),
        (["view"], "0 takes a free one. [default: 5175; 0 to 65535]"),
        (["proxy"], "no limit by default. [at least 0.1]"),
    ],
)
def test_what_a_number_may_be_stands_behind_its_option(words, said):
    shown = CliRunner().invoke(app, [*words, "--help"]).output
    assert said in " ".join(shown.split())


@pytest.mark.parametrize(("word", "command"), [("status", "show"), ("search", "recall"), ("restore", "undo")])
def test_a_command_is_found_by_the_name_that_it_has_elsewhere(cli, word, command):
    """`manager.status()` is `compact show`."""
    done = cli(word, "session-1")
    assert (done.code, done.err) == (2, f"error: No such command '{word}'\nhint: use compact {command}\n")


def test_alone_it_prints_its_help(cli):
    """Without a command: what there is."""
    done = cli()
    assert done.code == 0
    assert "Usage: compact" in done.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["rn"], "No such command 'rn'"),
        (["run"], "Missing argument 'FILE'"),
        (["run", "x.json", "--wat"], "No such option: --wat"),
        (["plan", "x.json", "--limit", "many"], "Invalid value for '--limit'"),
        (["run", "gone.json"], "there is no file gone.json"),
        (["inspect", "."], "there is no log in the folder ."),
    ],
)
def test_errors_are_two_lines(cli, arguments, said):
    """One line says what, one what to do; the exit code is 2, and stdout is empty."""
    done = cli(*arguments)
    assert (done.code, done.out) == (2, "")
    error, hint = done.err.splitlines()
    assert error.startswith("error: ")
    assert said in error
    assert hint.startswith("hint: ")


def test_place_of_a_bad_message(cli, tmp_path):
    """A message that cannot be read is named by its place."""
    path = tmp_path / "bot.json"
    path.write_text(json.dumps([{"role": "user", "content": "a"}, {"role": "bot"}]))
    for command in ("run", "plan", "inspect"):
        assert cli(command, path).err.startswith("error: messages[1].role: unknown role 'bot'\nhint: use one of system")


def test_error_without_a_hint_gets_one(cli, monkeypatch, transcript):
    """There is always something to do next."""

    def fail(*_: object) -> None:
        raise CompactError("no luck\ntoday")

    monkeypatch.setattr("compact.cli.transcripts.run.read_transcript", fail)
    assert cli("run", transcript).err.splitlines() == [
        "error: no luck today",
        "hint: run it again with --debug to see where this comes from",
    ]


def test_bug_is_no_traceback(cli, monkeypatch, transcript):
    """What should not happen is two lines, too, with another exit code."""

    def fail(*_: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("compact.cli.transcripts.run.read_transcript", fail)
    done = cli("run", transcript)
    assert done.code == 1
    assert done.err.startswith("error: ZeroDivisionError: oops\nhint: this is a bug in compact")


@pytest.mark.parametrize("arguments", [["--debug", "run", "gone.json"], ["run", "gone.json", "--debug"]])
def test_debug_shows_the_trace(process, arguments):
    """Before or after the command."""
    done = process(*arguments)
    assert done.code == 1
    assert "Traceback" in done.err
    assert "TranscriptError" in done.err


def test_reader_that_leaves(tmp_path):
    """`| head -1` ends the command without a word."""
    path = tmp_path / "long.json"
    path.write_text(json.dumps([{"role": "user", "content": "word " * 50} for _ in range(5000)]))
    process = subprocess.Popen(
        [COMMAND, "run", str(path), "--window", "1000000", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    errors = process.stderr.read().decode()
    process.stderr.close()
    assert process.wait(timeout=60) == 1
    assert errors == ""


def test_reader_that_leaves_in_process(monkeypatch, transcript):
    """The buffer that nobody reads is pointed at nothing."""
    pointed: list[bool] = []

    def leave(text: str) -> None:
        raise BrokenPipeError

    monkeypatch.setattr("compact.cli.screen.write", leave)
    monkeypatch.setattr(main_module, "_discard_output", lambda: pointed.append(True))
    assert main(["run", str(transcript)]) == 1
    assert pointed


def test_interrupted():
    """Ctrl-C ends with 130 and no traceback."""
    parent, child = pty.openpty()
    process = subprocess.Popen([COMMAND, "run", "-"], stdin=child, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stderr is not None
    assert b"reading a transcript from the terminal" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    os.close(child)
    os.close(parent)
    assert process.returncode == 130
    assert errors.strip() == b""


def test_interrupted_in_process(cli, monkeypatch, transcript):
    """The same, wherever it hits."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("compact.cli.transcripts.run.read_transcript", interrupt)
    assert cli("run", transcript).code == 130


def test_narrow_encoding(tmp_path, transcript):
    """A terminal without arrows gets them in ASCII, not an error; JSON is escaped."""
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [COMMAND, "run", str(transcript), "--now"]
    done = subprocess.run(command, capture_output=True, env=environment, check=True)
    assert b" -> " in done.stderr
    assert b"?" not in done.stderr
    assert json.loads(done.stdout.decode("ascii"))
