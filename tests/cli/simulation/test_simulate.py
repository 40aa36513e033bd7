"""`compact simulate`: files in, a comparison of policies out, as a table, as JSON and as a page."""

from __future__ import annotations

import gzip
import json
import re
import shlex
from collections.abc import Callable
from html.parser import HTMLParser
from itertools import combinations
from math import dist
from pathlib import Path
from typing import Any

import pytest

from compact.cli.simulation.charts import Dot, dot_chart
from compact.testing import assistant, tool_exchange, user

SMALL = ("--window", "3000")
SAMPLES = Path(__file__).parents[2] / "agent_logs" / "samples"


def harbour() -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [user("Book cabin ZX4471 for Marlowe. Never book anything before noon.")]
    for number in range(30):
        messages += tool_exchange(f"c{number}", f"berth {number}: " + "the tide comes in slowly " * 15, tool="look")
    return [*messages, assistant("Cabin ZX4471 is booked for Marlowe."), user("Thanks."), assistant("Anything else?")]


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    path = tmp_path / "harbour.jsonl"
    path.write_text("".join(json.dumps(message) + "\n" for message in harbour()))
    return path


def test_the_default_policies_are_compared_in_two_tables(cli: Callable[..., Any], transcript: Path) -> None:
    """One for cost, one for what is kept, and a sentence."""
    outcome = cli("simulate", transcript, *SMALL)
    assert outcome.code == 0, outcome.err
    assert "1 session, 32 model calls, model gpt-4o" in outcome.out
    for name in ("none", "window", "clear", "langchain", "compact"):
        assert len(re.findall(rf"^{name} ", outcome.out, re.MULTILINE)) == 2, name
    assert "\nUse " in outcome.out


def test_policies_have_settings(cli: Callable[..., Any], transcript: Path, tmp_path: Path) -> None:
    """By name, with or without its section, or from a file; a lower target leaves less."""
    (tmp_path / "low.yaml").write_text("policy: {trigger_pct: 0.5, prefetch_pct: 0.4, target_pct: 0.2}\n")
    names = ("compact", "compact:trigger_pct=0.5,policy.target_pct=0.2,prefetch_pct=0.4", "compact:low.yaml")
    options = [word for name in names for word in ("--policy", name)]
    data = cli("simulate", transcript, *SMALL, "--json", *options).data
    plain, named, filed = data["policies"]
    assert [one["policy"] for one in data["policies"]] == list(names)
    assert named["input_tokens"] == filed["input_tokens"] < plain["input_tokens"]


def test_the_data_has_every_figure(cli: Callable[..., Any], transcript: Path) -> None:
    """Shares from 0 to 1, sizes per call, and the recommendation."""
    data = cli("simulate", transcript, *SMALL, "--json", "--policy", "none", "--policy", "compact").data
    none, compact = data["policies"]
    assert data["recommended"] == "compact"
    assert (none["recall"], none["overflows"] > 0) == (1, True)
    assert compact["constraints_kept"] == compact["constraints"] > 0
    assert data["currency"] == "USD"
    assert [one["policy"] for one in data["sessions"]] == ["none", "compact"]
    assert max(data["sessions"][1]["prompt_tokens"]) == compact["largest_prompt_tokens"] <= 3_000


def test_a_folder_is_searched_and_what_is_no_transcript_is_said(
    cli: Callable[..., Any], transcript: Path, tmp_path: Path
) -> None:
    """Zipped or not, several in a file, in folders below."""
    folder = tmp_path / "logs" / "deeper"
    folder.mkdir(parents=True)
    lines = "".join(json.dumps({"messages": harbour()[:n]}) + "\n" for n in (20, 30))
    (folder / "two.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    (folder / "one.json").write_text(json.dumps(harbour()))
    (folder / "package.json").write_text('{"name": "no transcript"}')
    (folder / "asked.json").write_text(json.dumps([user("nobody answered")]))
    (folder / "notes.txt").write_text("nothing")
    outcome = cli("simulate", tmp_path / "logs", "--policy", "none", "--json")
    assert [one["session"] for one in outcome.data["sessions"]] == ["one", "two#0", "two#1"]
    assert "1 file could not be read as transcripts" in outcome.err
    assert "1 session without a reply of an assistant left out" in outcome.err
    longest = cli("simulate", tmp_path / "logs", "--policy", "none", "--json", "--longest", "1").data
    assert [one["session"] for one in longest["sessions"]] == ["one"]


def test_logs_of_agents_in_a_folder_are_read_and_what_is_not_understood_is_said(
    cli: Callable[..., Any], tmp_path: Path
) -> None:
    """By content: the folder of opencode's is one log, not one for each of its files."""
    (tmp_path / "pi.log.jsonl").write_bytes((SAMPLES / "pi.jsonl").read_bytes())
    export, storage = json.loads((SAMPLES / "opencode.json").read_text()), tmp_path / "opencode" / "storage"
    files = {f"session/global/{export['info']['id']}.json": export["info"]}
    for message in export["messages"]:
        own = message["info"]
        files[f"message/{export['info']['id']}/{own['id']}.json"] = own
        files |= {f"part/{own['id']}/{part['id']}.json": part for part in message["parts"]}
    for name, content in files.items():
        (storage / name).parent.mkdir(parents=True, exist_ok=True)
        (storage / name).write_text(json.dumps(content))
    outcome = cli("simulate", tmp_path, "--policy", "none", "--json")
    assert [one["session"] for one in outcome.data["sessions"]] == ["storage", "pi.log"]
    assert "not understood: type 'weather', 1 time" in outcome.err
    assert "could not be read" not in outcome.err


def test_other_dialects_are_replayed_in_the_one_form(cli: Callable[..., Any], tmp_path: Path) -> None:
    """A request to Anthropic: the instructions are a system message, the tools are part of each prompt."""
    call = {"type": "tool_use", "id": "t1", "name": "look", "input": {"berth": 7}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "free"}
    tool = {"name": "look", "description": "looks", "input_schema": {"type": "object", "properties": {}}}
    request = {
        "system": "Be kind to the harbour master.",
        "tools": [tool],
        "messages": [
            user("Is berth 7 free?"),
            assistant([call]),
            {"role": "user", "content": [result]},
            assistant("Yes."),
        ],
    }
    (tmp_path / "request.json").write_text(json.dumps(request))
    (tmp_path / "bare.json").write_text(json.dumps({**request, "tools": [], "system": ""}))
    whole = cli("simulate", "request.json", "--policy", "none", "--json").data["sessions"][0]["prompt_tokens"]
    bare = cli("simulate", "bare.json", "--policy", "none", "--json").data["sessions"][0]["prompt_tokens"]
    assert len(whole) == len(bare) == 2
    assert all(one > other + 10 for one, other in zip(whole, bare, strict=True))


def test_the_model_that_was_recorded_is_priced_unless_one_is_named(cli: Callable[..., Any], tmp_path: Path) -> None:
    request = {
        "model": "claude-sonnet-4-5",
        "system": "Be kind.",
        "messages": [user("Is berth 7 free?"), assistant("Yes.")],
    }
    (tmp_path / "request.json").write_text(json.dumps(request))
    outcome = cli("simulate", "request.json", "--policy", "none", "--json")
    assert outcome.data["model"] == "claude-sonnet-4-5"
    assert "for claude-sonnet-4-5, as recorded; --model names another" in outcome.err
    assert cli("simulate", "request.json", "--policy", "none", "--json", "--model", "gpt-4o").data["model"] == "gpt-4o"
    (tmp_path / "request.json").write_text(json.dumps({**request, "model": "nobody-knows-it"}))
    unknown = cli("simulate", "request.json", "--policy", "none", "--json")
    assert unknown.data["model"] == "gpt-4o"
    assert "for gpt-4o: nothing is known of the recorded model, nobody-knows-it; --model names another" in unknown.err
    (tmp_path / "request.json").write_text(json.dumps(request["messages"]))
    unnamed = cli("simulate", "request.json", "--policy", "none", "--json")
    assert "for gpt-4o: no file says which model it was recorded with; --model names another" in unnamed.err
    (tmp_path / "compact.yaml").write_text("model: gpt-4o")
    assert "no file says" not in cli("simulate", "request.json", "--policy", "none", "--json").err


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.values: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.values += [value or "" for name, value in attrs if name in ("src", "href")]


def test_no_disc_of_the_chart_covers_another() -> None:
    """Policies that cost and keep the same stand side by side, with a line to their place."""
    figures = [(14.2, 1.0), (14.2, 1.0), (3.5, 0.4), (3.5, 0.4), (3.5, 0.4), (3.52, 0.41), (9.1, 0.0), (9.2, 0.01)]
    dots = [Dot(str(number), number, x, y, f"p{number}") for number, (x, y) in enumerate(figures)]
    chart = dot_chart(dots, x_title="price", y_title="recall", money=True)
    discs = [(float(x), float(y)) for x, y in re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', chart)]
    assert len(discs) == len(dots)
    assert min(dist(one, other) for one, other in combinations(discs, 2)) > 18
    assert chart.count('class="aside"') == 5
    assert re.findall(r">(\$[\d.,]+)<", chart) == ["$0", "$5", "$10", "$15"]


@pytest.mark.parametrize(
    ("highest", "named"),
    [
        (14.2, ["$0", "$5", "$10", "$15"]),
        (0.61, ["$0.00", "$0.20", "$0.40", "$0.60", "$0.80"]),
        (0.012, ["$0.0000", "$0.0025", "$0.0050", "$0.0075", "$0.0100", "$0.0125"]),
        (2_300, ["$0", "$500", "$1,000", "$1,500", "$2,000", "$2,500"]),
        (11, ["$0.00", "$2.50", "$5.00", "$7.50", "$10.00", "$12.50"]),
    ],
)
def test_the_prices_of_an_axis_are_written_in_one_way(highest: float, named: list[str]) -> None:
    chart = dot_chart([Dot("1", 0, highest, 0.5, "p")], x_title="price", y_title="recall", money=True)
    assert re.findall(r">(\$[\d.,]+)<", chart) == named


def test_the_page_is_one_file_that_loads_nothing(cli: Callable[..., Any], transcript: Path, tmp_path: Path) -> None:
    """Charts are in it; no script, no link, and names are escaped."""
    named = tmp_path / "<b>harbour.jsonl"
    transcript.rename(named)
    outcome = cli("simulate", named, *SMALL, "--html", "page.html", "--policy", "none", "--policy", "compact")
    assert outcome.code == 0
    assert "wrote page.html" in outcome.err
    page = Path("page.html").read_text()
    found = _Elements()
    found.feed(page)
    assert found.names.count("svg") == 3
    assert found.names.count("polyline") == 2
    assert {"script", "link", "img", "b"} & set(found.names) == set()
    assert found.values == []
    assert "http" not in page.replace("http-equiv", "")
    assert "Use compact" in page


@pytest.mark.parametrize(
    ("window", "why"), [("3000", "agents needed nothing later"), ("30000", "no session reaches the trigger")]
)
def test_a_page_without_recall_says_why(
    cli: Callable[..., Any], transcript: Path, tmp_path: Path, window: str, why: str
) -> None:
    messages = [user("Look."), *harbour()[1:-3], assistant("Done.")]
    transcript.write_text("".join(json.dumps(message) + "\n" for message in messages))
    assert cli("simulate", transcript, "--window", window, "--html", "page.html", "--policy", "none").code == 0
    assert f"There is no recall to compare: {why}" in Path("page.html").read_text()


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (["--policy", "windw"], "there is no policy 'windw'", "did you mean window? there are none, window"),
        (["--policy", "window:keep=3"], "the policy 'window' takes no settings", "only compact does"),
        (["--policy", "compact:trigger"], "'trigger' in the policy 'compact:trigger' sets nothing", "write name=value"),
        (["--policy", "compact:triger_pct=0.5"], "there is no setting 'triger_pct'", "did you mean trigger_pct?"),
        (["--policy", "compact:trigger_pct=7"], "policy.trigger_pct", "hint:"),
        (["--policy", "none", "--html", "no/such/folder.html"], "cannot write no/such/folder.html", "check the path"),
    ],
)
def test_errors_say_what_to_do(
    cli: Callable[..., Any], transcript: Path, words: list[str], message: str, hint: str
) -> None:
    """What is wrong, and what would be right."""
    outcome = cli("simulate", transcript, *SMALL, *words)
    assert outcome.code == 2
    assert message in outcome.err
    assert hint in outcome.err


def test_nothing_to_simulate_is_an_error(cli: Callable[..., Any], tmp_path: Path) -> None:
    """A folder without transcripts, and transcripts without a reply."""
    (tmp_path / "empty").mkdir()
    assert "there is no transcript in the folder" in cli("simulate", tmp_path / "empty").err
    (tmp_path / "asked.json").write_text(json.dumps([user("nobody answered")]))
    outcome = cli("simulate", "asked.json")
    assert outcome.code == 2
    assert "there is no session with a model call" in outcome.err


def test_the_commands_of_the_page_work(cli: Callable[..., Any], transcript: Path, tmp_path: Path) -> None:
    """Somebody who has a folder of logs and pastes them."""
    (tmp_path / "logs").mkdir()
    for path in ("session.jsonl", "logs/one.jsonl"):
        (tmp_path / path).write_bytes(transcript.read_bytes())
    (tmp_path / "session.json").write_text(json.dumps(harbour()))
    page = (Path(__file__).parents[3] / "docs/simulate.md").read_text(encoding="utf-8")
    lines = re.findall(r"^compact simulate .*$", page, re.MULTILINE)
    assert len(lines) == 5
    for line in lines:
        outcome = cli(*shlex.split(line.partition(" > ")[0], comments=True)[1:])
        assert outcome.code == 0, (line, outcome.err)
