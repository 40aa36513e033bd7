"""Tables on terminals of any width, in pipes and in any encoding: no figure is cut, and no sign ends a command."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from compact import CompactConfig, CompactManager
from compact.cli import screen
from compact.cli.ascii_text import ascii_of, shown_in
from compact.cli.screen import fitted_lines, list_lines, table_lines
from compact.testing import assistant, system, tool_run, user

COMMAND = str(Path(sys.executable).parent / "compact")
HISTORY = [
    system("be brief"),
    user("never touch the database; the limit is 12,345 euros"),
    *tool_run(60, words=160),
    assistant("I decided to use port 6432, because 5432 is taken."),
    user("go on → now"),
    *tool_run(20, words=160),
]
WIDE = 400
STORED = [
    ("sessions",),
    ("show", "demo"),
    ("show", "demo", "--plan", "1"),
    ("diff", "demo", "0", "1"),
    ("report", "demo"),
    ("report", "demo", "--all"),
    ("prune", "--older-than", "1m", "--dry-run"),
]
FILES = [
    ("inspect", "session.json"),
    ("plan", "session.json", "--window", "8000"),
    ("plan", "session.json", "--now", "--model", "claude-sonnet-4-5"),
    ("config", "show"),
]
_NUMBER = re.compile(r"\d[\d,.]*")
# What turns while something takes its time is drawn as often as there is time for.
_SPINNER = re.compile(r"(?:planning for|counting|reading) [\d,]+ messages?")
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def config_for(path: Path) -> CompactConfig:
    return CompactConfig(
        max_context_tokens=6000,
        summarizer={"prefetch": "never"},
        state={"url": f"sqlite:///{path}"},
        storage={"adapter": "none"},
        telemetry={"exporter": "none"},
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a session that was compacted several times."""
    path = tmp_path_factory.mktemp("store") / "state.db"
    with CompactManager(config_for(path)) as manager:
        for end in [*range(5, len(HISTORY), 9), len(HISTORY)]:
            manager.preflight("demo", HISTORY[:end])
    return path


@pytest.fixture
def place(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a transcript, and the store in the settings."""
    Path("session.json").write_text(json.dumps(HISTORY), encoding="utf-8")
    monkeypatch.setenv("COMPACT_STATE__URL", f"sqlite:///{built}")
    # What is deleted must have been unused for a minute.
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + 3600)


def _figures(text: str) -> Counter[str]:
    shown = _SPINNER.sub("", _CONTROL.sub("", text))
    return Counter(found.rstrip(",.") for found in _NUMBER.findall(shown))


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("arguments", [*STORED, *FILES], ids=" ".join)
def test_every_figure_is_there_in_any_width(terminal, arguments):
    """What a wide terminal shows, a narrow one shows too."""
    wide = terminal(*arguments, columns=WIDE)
    assert wide.code == 0
    expected = _figures(wide.out)
    assert expected
    for columns in (40, 60, 80, 120):
        narrow = terminal(*arguments, columns=columns)
        missing = expected - _figures(narrow.out)
        assert not missing, (columns, missing)


@pytest.mark.usefixtures("place")
def test_the_report_keeps_its_last_column(terminal, cli):
    """At 80 columns too: `lost` is a column or a label, and each count is whole."""
    shown = _CONTROL.sub("", terminal("report", "demo", columns=80).out)
    assert re.search(r"^lost: \d|\blost\s*$", shown, re.MULTILINE)
    assert "\x1b" not in cli("report", "demo").out, "in a pipe it is plain"


COLUMNS = ("version", "tokens", "reason")
ROWS = [("1", "63,985", "below the trigger of 108,800 tokens"), ("12", "7", "x" * 30)]
RIGHT = (True, True, False)


def test_a_table_that_fits_is_aligned():
    """Numbers right, words left."""
    assert table_lines(COLUMNS, ROWS[:1], RIGHT) == [
        "version  tokens  reason",
        "      1  63,985  below the trigger of 108,800 tokens",
    ]
    assert fitted_lines(COLUMNS, ROWS[:1], RIGHT, 80) == table_lines(COLUMNS, ROWS[:1], RIGHT)


def test_the_last_column_is_wrapped_between_words():
    """Under its beginning."""
    assert fitted_lines(COLUMNS, ROWS[:1], RIGHT, 40) == [
        "version  tokens  reason",
        "      1  63,985  below the trigger of",
        "                 108,800 tokens",
    ]


def test_what_cannot_be_wrapped_is_a_list():
    """A word that is too long, figures at the end, or hardly any room for words."""
    assert fitted_lines(COLUMNS, ROWS, RIGHT, 40) is None
    assert fitted_lines(COLUMNS, ROWS[:1], (True, True, True), 40) is None
    assert fitted_lines(COLUMNS, ROWS[:1], RIGHT, 30) is None
    assert list_lines(COLUMNS, [("1", "63,985", ""), ("2", "7", "why")]) == [
        *("version: 1", "tokens: 63,985", "", "version: 2", "tokens: 7", "reason: why")
    ]


# -- encodings --------------------------------------------------------------------------------------------------------


def test_ascii_stands_for_what_an_encoding_lacks():
    """Signs that look alike, letters without their marks, and the number of everything else."""
    assert "".join(map(ascii_of, "→…─│┼█░⠋é中")) == "->...-|+#.*e\\u4e2d"
    assert shown_in("a → é", "latin-1") == "a -> é"
    assert shown_in("a → é", "utf-8") == "a → é"


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    "arguments",
    [
        ("doctor",),
        ("demo", "--fast", "--window", "900000"),
        ("show", "demo"),
        ("show", "demo", "--prompt"),
        *STORED[3:5],
        *FILES,
    ],
    ids=" ".join,
)
def test_a_locale_without_utf_8(arguments):
    """Nothing is raised, and no question mark stands for a sign of ours."""
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    environment["PYTHONIOENCODING"] = "ascii"
    done = subprocess.run([COMMAND, *arguments], capture_output=True, env=environment, check=False)
    shown = (done.stdout + done.stderr).decode("ascii")
    assert done.returncode == 0, shown
    assert "UnicodeEncodeError" not in shown
    assert not re.search("^error:", shown, re.MULTILINE)
    assert "?" not in shown


@pytest.mark.parametrize("form", ["table", "fitted", "list"])
def test_each_cell_of_a_long_table_is_measured_a_few_times(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list of 10,000 sessions took minutes when every row measured all of them."""
    measured: list[str] = []
    width_of = screen.display_width
    monkeypatch.setattr(screen, "display_width", lambda text: (measured.append(text), width_of(text))[1])
    columns, right = ("session", "messages"), (False, True)
    cells = [(f"s-{number}", str(number)) for number in range(200)]
    match form:
        case "table":
            lines = table_lines(columns, cells, right)
        case "fitted":
            lines = fitted_lines(columns, cells, right, 40) or []
        case _:
            lines = list_lines(columns, cells)
    assert any(line.startswith(("s-199", "session: s-199")) for line in lines)
    assert len(measured) <= 4 * 2 * (len(cells) + 1)
