"""The fidelity benchmark measures what it says, on transcripts small enough to count by hand."""

import gzip
import json
import re
import sys
import tempfile
from pathlib import Path

import pytest

from compact.measuring import needs, recordings, scores, specifics
from compact.measuring.needs import Commons, SessionNeeds, needs_of, typed_lines_of
from compact.measuring.recordings import Recording, Wire, argument_values, interface_names, text_of
from compact.measuring.scores import Scores, missed, score
from compact.measuring.specifics import find_bounded, specific_names, specific_strings
from compact.testing import assistant, system, tool_exchange, user

_BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.insert(0, str(_BENCHMARKS))

from fidelity import cache, command  # noqa: E402
from fidelity.baselines import BASELINES, Job, cover, head_tail, mask, recency  # noqa: E402
from fidelity.chained import CONSTRAINTS, look, with_constraints  # noqa: E402
from fidelity.floors import FLOORS, shortfalls  # noqa: E402
from fidelity.means import mean_scores  # noqa: E402
from fidelity.product import check_output, compact_once, invented_strings  # noqa: E402
from fidelity.transcripts import cut_place, domain_of, token_counts, transcript_of  # noqa: E402

EARLIER = [
    user("Please book the blue cabin for the Marlowe family, their code is ZX4471."),
    *tool_exchange(
        "c1", "cabin 20318 is free until 2024-07-09\nthe harbour fee is due on arrival", path="src/cabins.py"
    ),
    assistant("Cabin 20318 is free; shall I take it for the Marlowes?"),
    user("Yes, and tell the harbour office about it as well."),
]


def facts_for(
    future: list[Wire], *, earlier: list[Wire] | None = None, policy: str = "", others: int = 0
) -> SessionNeeds:
    """What a future needs of the earlier messages, among so many other sources that say the same."""
    messages = [*(earlier or EARLIER), *future]
    transcript = Recording("one", "cc-one", policy, tuple(messages))
    crowd = [Recording(f"other{n}", f"cc-other{n}", "", tuple(messages)) for n in range(others)]
    cut = len(messages) - len(future)
    # Forty that say nothing: a word of one transcript in forty-one is rare.
    silent = [Recording(f"silent{n}", "cc-silent", "", (user("hm"),)) for n in range(40)]
    return needs_of("one", transcript, future, cut, token_counts(messages), Commons([transcript, *crowd, *silent]))


def strings(facts: SessionNeeds) -> set[str]:
    """The strings that are needed."""
    return {need.string for need in facts.needs}


@pytest.mark.parametrize(
    ("text", "string"),
    [
        ("see src/app/main.py now", "src/app/main.py"),
        (r"open C:\work\notes.txt", r"C:\work\notes.txt"),
        ("at https://example.org/a?b=1.", "https://example.org/a?b=1"),
        ("call load_user_name there", "load_user_name"),
        ("call loadUserName there", "loadUserName"),
        ("a KeyValueError came", "KeyValueError"),
        ("flight HAT069 leaves", "HAT069"),
        ("it costs 1,250 or so", "1,250"),
        ("port 8080 is taken", "8080"),
        ("on 2024-05-20 at noon", "2024-05-20"),
        ("run it with --no-cache", "--no-cache"),
        ('he said "not before noon" twice', "not before noon"),
        ("type `make all` then", "make all"),
    ],
)
def test_specific_strings_of_every_kind_are_found(text: str, string: str) -> None:
    """Paths, addresses, identifiers, ids, numbers, dates, flags and quoted phrases."""
    assert string in specific_strings(text)


def test_plain_words_and_short_numbers_are_not_specific() -> None:
    """What anybody could have written is no need; neither is the n of an escaped line end."""
    assert specific_strings("Thank you, the two of them take 12 boxes.") == set()
    assert specific_names(r"one\nNext two") == set()


def test_strings_are_found_on_word_boundaries() -> None:
    """A number inside a longer one is not there; an ending that is no word needs no boundary."""
    assert find_bounded("4471", "ZX4471 44715 (4471)") == 14
    assert find_bounded("4471", "ZX4471") == -1
    assert find_bounded("/opt/", "in /opt/data") == 3


def test_arguments_count_by_their_values_alone() -> None:
    """Names of tools and arguments are known from schemas; values are what the agent said."""
    call = tool_exchange("c1", "done", path="src/cabins.py", depth=3)[0]
    assert set(argument_values(call)) == {"src/cabins.py", "3"}
    assert {"path", "depth"} < interface_names([call])
    assert "path" not in text_of([call]).split()


def test_system_messages_are_held_apart() -> None:
    """The system prompt is outside budget and metric."""
    read = transcript_of({"id": "a", "source": "tau2", "messages": [system("Be kind."), user("Hello there")]})
    assert (read.system, len(read.messages), domain_of(read.source)) == ("Be kind.", 1, "service")


@pytest.mark.parametrize(
    ("source", "domain"),
    [("cc-kimi-cli", "coding"), ("pi-mono", "coding"), ("minisweagent", "swe-bench"), ("agentdojo", "service")],
)
def test_each_source_has_its_domain(source: str, domain: str) -> None:
    """Three means, whatever the number of sources."""
    assert domain_of(source) == domain


def test_a_cut_leaves_no_call_open() -> None:
    """A cut that would part a call from its result moves behind the result."""
    messages = [user("go"), *tool_exchange("c1", "long result " * 50), assistant("done"), user("more " * 80)]
    counts = token_counts(messages)
    assert cut_place(messages, counts, share=(counts[0] + 1) / sum(counts)) == 3
    assert cut_place(messages, counts, share=1) == len(messages)


def test_a_need_was_said_before_and_is_said_again() -> None:
    """What the agent uses after the cut and had from before it, in text or in arguments."""
    future = [
        *tool_exchange("c2", "ok", cabin="20318", code="ZX4471"),
        assistant("Booked until 2024-07-09, ref 99812."),
    ]
    assert strings(facts_for(future)) == {"20318", "ZX4471", "2024-07-09"}


def test_what_was_given_back_is_no_need() -> None:
    """A tool or a person said it again before the agent did."""
    assert strings(facts_for([user("It is ZX4471."), assistant("ZX4471, right.")])) == set()
    assert strings(facts_for([assistant("ZX4471?"), user("Yes, ZX4471.")])) == {"ZX4471"}


def test_a_real_summary_gives_nothing_back() -> None:
    """It is what is being measured."""
    summary = {**user("The code is ZX4471."), "name": "compact_summary"}
    assert strings(facts_for([summary, assistant("ZX4471 it is.")])) == {"ZX4471"}


def test_known_strings_are_no_needs() -> None:
    """The system prompt, the names of tools, and general knowledge, which two other sources have too."""
    future = [assistant("ZX4471 it is.")]
    assert strings(facts_for(future, policy="codes look like ZX4471")) == set()
    assert strings(facts_for(future, others=1)) == {"ZX4471"}
    assert strings(facts_for(future, others=2)) == set()
    earlier = [user("use read_file_now on it"), *tool_exchange("c1", "ok", tool="read_file_now")]
    assert strings(facts_for([assistant("read_file_now worked")], earlier=earlier)) == set()


def test_a_need_knows_who_said_it_last() -> None:
    """The report on what was missed says where to look."""
    facts = facts_for([assistant("20318 for ZX4471, see src/cabins.py")])
    last = {need.string: need.last_role for need in facts.needs}
    assert last == {"20318": "assistant", "ZX4471": "user", "src/cabins.py": "arguments"}
    assert facts.needs[0].last_distance > 0


def test_a_bare_list_is_recalled_but_not_linked() -> None:
    """Strings torn from their words count half; the original counts whole; nothing counts nothing."""
    facts = facts_for([assistant("Cabin 20318 for ZX4471 until 2024-07-09.")])
    listed, whole, nothing = (score(facts, kept) for kept in ("ZX4471\n2024-07-09\n20318", text_of(EARLIER), ""))
    assert (listed.recall, whole.recall, nothing.recall) == (1, 1, 0)
    assert listed.linked == 0
    assert (whole.linked, nothing.linked) == (1, 0)


def test_a_string_may_keep_less_than_all_its_neighbours() -> None:
    """Forty percent of the words beside one of its places are enough."""
    facts = facts_for([assistant("So, ZX4471.")], earlier=[user("alpha bravo delta ZX4471 golf hotel india")])
    assert score(facts, "alpha bravo golf ZX4471").linked == 1
    assert score(facts, "alpha bravo ZX4471").linked == 0
    assert [need.string for need in missed(facts, "alpha bravo")] == ["ZX4471"]


def test_only_what_people_typed_is_user_text() -> None:
    """Not what a harness put into their mouth, and nothing too short to tell."""
    messages = [
        user("Please keep the old names.\nok\n  Never touch vendor code.  "),
        {**user("Injected by the harness itself."), "name": "injected"},
        user("<command-name>/clear</command-name> and more"),
        *tool_exchange("c1", "a result that is long enough"),
    ]
    assert typed_lines_of(messages) == ("Please keep the old names.", "Never touch vendor code.")


def test_user_text_is_a_share_of_characters() -> None:
    """A long line weighs more than a short one."""
    facts = facts_for([assistant("ok")], earlier=[user("a line of twenty two c\nthe second one is of thirty three")])
    assert score(facts, "> a line of twenty two c").user_text == pytest.approx(22 / 55)


def test_rare_words_are_those_few_transcripts_use() -> None:
    """Plain words, in any case, that the agent took up again; frequent ones do not count."""
    assert facts_for([assistant("The MARLOWE family likes the harbour.")]).rare_words == {
        "marlowe",
        "family",
        "harbour",
    }
    assert facts_for([assistant("The Marlowe family")], others=30).rare_words == set()
    facts = facts_for([assistant("The Marlowe family")])
    assert score(facts, "a FAMILY of four").rare_words == 0.5


def test_lines_that_were_reproduced_count_verbatim() -> None:
    """A line of 15 to 300 characters that the agent repeated."""
    facts = facts_for([assistant("Note:\nthe harbour fee is due on arrival\nshort")])
    assert facts.lines == ("the harbour fee is due on arrival",)
    assert score(facts, "  the harbour fee is due on arrival.").lines == 1
    assert score(facts, "the harbour fee is due").lines == 0


def test_a_transcript_without_needs_does_not_count() -> None:
    """Nothing to keep is neither 0 nor 100 percent."""
    scores = score(facts_for([assistant("Fine.")]), "anything")
    assert (scores.recall, scores.linked, scores.lines) == (None, None, None)


def test_the_mean_is_over_transcripts_then_over_domains() -> None:
    """Many transcripts of one domain do not outvote one of another; an absent domain has no vote."""
    full, none = Scores(1, 1, 1, 1, 1), Scores(0, 0, 0, 0, None)
    means = mean_scores([("cc-a", full), ("cc-b", full), ("cc-c", none), ("tau2", none)])
    assert means["coding"]["recall"] == pytest.approx(200 / 3)
    assert means["mean"]["recall"] == pytest.approx(100 / 3)
    assert means["mean"]["lines"] == 100
    assert means["swe-bench"]["recall"] is None


@pytest.mark.parametrize("name", BASELINES)
def test_baselines_stay_within_their_room(name: str) -> None:
    """Every baseline gets the same number of characters, give or take line ends."""
    facts = facts_for([assistant("Cabin 20318 for ZX4471.")])
    kept = BASELINES[name](Job(EARLIER, 120, facts))
    assert 0 < len(kept) <= 123


def test_baselines_do_what_their_names_say() -> None:
    """The tail; both ends; no tool result."""
    job = Job(EARLIER, 100, facts_for([assistant("ok")]))
    assert text_of(EARLIER).endswith(recency(job))
    assert head_tail(job).startswith("Please book the blue")
    assert "is due on arrival" not in mask(Job(EARLIER, 10_000, job.facts))


def test_coverage_takes_each_string_once() -> None:
    """A line that brings nothing new is not taken, however rich."""
    from fidelity.baselines import Piece

    pieces = [Piece(text, frozenset(text.split()), 1) for text in ("a1 b2 c3", "a1 b2", "d4 d4 d4 d4")]
    assert cover(pieces, 100, set()) == ["a1 b2 c3", "d4 d4 d4 d4"]
    assert cover(pieces, 100, {"d4"}) == ["a1 b2 c3"]
    assert cover(pieces, 9, set()) == ["a1 b2 c3"]


def test_invented_names_are_found_and_own_marks_are_not() -> None:
    """A path that no source has is invented; the frame of a summary and the text of a stub are ours."""
    before = [user("read src/a.py, it has 250 lines")]
    summary = "<COMPACT-SUMMARY v1>\nStands for 312 earlier messages; recall finds them.\nsrc/a.py\n</COMPACT-SUMMARY>"
    stub = "[cleared: 1,300 tokens; old; recall m12]"
    assert invented_strings(before, [assistant(summary), assistant(stub)]) == []
    assert invented_strings(before, [assistant("src/b.py has 251 lines")]) == ["251", "src/b.py"]


def test_gates_catch_an_illegal_and_an_oversized_output() -> None:
    """A result without its call, and more tokens than allowed."""
    orphan = tool_exchange("c9", "nothing new")[1]
    assert [f.gate for f in check_output("t", EARLIER, [orphan], 1_000)] == ["legal"]
    assert [f.gate for f in check_output("t", EARLIER, EARLIER, 5)] == ["budget"]


def test_constraints_are_said_once_each_and_looked_for() -> None:
    """Injected into the first round where no call is open; a round that lost one says which."""
    messages = [m for n in range(40) for m in (user(f"step {n} " + "word " * 30), *tool_exchange(f"c{n}", "x " * 40))]
    said = with_constraints(messages)
    assert [text for _, text in CONSTRAINTS] == [m["content"] for m in said if m not in messages]
    assert not check_output("t", said, said, 1_000_000)
    gates = {failure.gate for failure in look("t", 2, said, messages, 1_000_000, None).failures}
    assert gates == {"one summary", "constraint"}


def test_floors_name_what_fell_short() -> None:
    """A figure at its floor passes; what is not measured is not judged."""
    assert shortfalls({**FLOORS, "recall": 67.96}, FLOORS) == ["recall 68.0, floor 68"]
    assert shortfalls({"recall": None}, FLOORS) == []


def test_the_benchmark_has_an_extractor_of_its_own() -> None:
    """Only front doors, the counter and the legality check of the product are imported."""
    allowed = {
        "compact",
        "compact.core.json_data",
        "compact.core.messages.entries",
        "compact.core.messages.legality",
        "compact.core.messages.tokenizer",
        "compact.measuring",
        "compact.measuring.needs",
        "compact.measuring.recordings",
        "compact.measuring.scores",
        "compact.measuring.specifics",
        "compact.tokens",
    }
    metrics = [Path(module.__file__) for module in (needs, recordings, scores, specifics)]
    files = [*(_BENCHMARKS / "fidelity").glob("*.py"), *metrics]
    sources = "\n".join(path.read_text(encoding="utf-8") for path in files)
    assert set(re.findall(r"^\s*(?:from|import) (compact[\w.]*)", sources, re.MULTILINE)) <= allowed


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of two transcripts and a real compaction between them."""
    filler = "the ferry master counts the berths again and again while the tide comes in slowly "
    first: list[Wire] = [user("Book the cabin ZX4471 for Marlowe, and never before noon please.")]
    for n in range(24):
        first += tool_exchange(f"c{n}", f"berth {n}: {filler * 3}", berth=f"pier-{n}")
    first += [assistant("Cabin ZX4471 is taken care of."), user("Thank you, what about the pier?")]
    second = [{**user("ZX4471 was booked."), "name": "compact_summary"}, assistant("ZX4471, and pier-3.")]
    rows = [
        {"id": "cc-a/1#0", "source": "cc-a", "messages": first},
        {"id": "cc-a/1#1", "source": "cc-a", "messages": second},
    ]
    natural = [{"id": "cc-a/1@1", "before": "cc-a/1#0", "after": "cc-a/1#1", "summary": "ZX4471 was booked. " * 20}]
    for name, lines in (("cc-a", rows), ("natural_compactions", natural)):
        with gzip.open(tmp_path / f"{name}.jsonl.gz", "wt", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
    monkeypatch.setenv("COMPACT_DATA", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_facts_are_found_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second time they are read from disk, and are the same."""
    found = cache.cached_facts(folder)
    monkeypatch.setattr(cache, "find_facts", lambda *_: pytest.fail("found again"))
    assert cache.cached_facts(folder) == found
    cuts, compactions, _ = found
    assert [facts.id for facts in cuts] == ["cc-a/1#0", "cc-a/1#1"]
    assert strings(compactions[0]) == {"ZX4471", "pier-3"}


def test_the_command_measures_and_writes_figures(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A table for people and the same as data; the gates decide the exit code."""
    file = folder / "figures.json"
    options = ["--systems", "compact,recency", "--budget", "25", "--jobs", "1", "--only", "cc-a/1#0", "--worst", "1"]
    code = command.main([*options, "--json", str(file)])
    printed, figures = capsys.readouterr().out, json.loads(file.read_text(encoding="utf-8"))
    assert (code, figures["gates"]) == (0, {}), printed
    assert (
        figures["recall"]["25.0"]["compact"]["coding"]["user_text"]
        > figures["recall"]["25.0"]["recency"]["coding"]["user_text"]
    )
    assert "gates failed: legal 0" in printed


def test_the_command_measures_real_summaries(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The summary that a model wrote stands beside what others keep in its room."""
    code = command.main(["natural", "--jobs", "1", "--systems", "llm summary,recency"])
    assert code == 0
    assert re.search(r"llm summary\s+50\.0", capsys.readouterr().out)


def test_an_empty_folder_is_a_plain_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is missing, and what to do."""
    monkeypatch.setenv("COMPACT_DATA", str(tmp_path / "nowhere"))
    assert command.main([]) == 2
    assert "hint: set COMPACT_DATA" in capsys.readouterr().err


def test_the_product_is_measured_through_its_front_door() -> None:
    """One compaction in a session of its own, twice the same."""
    history = [user("Book ZX4471."), *(m for n in range(20) for m in tool_exchange(f"c{n}", f"line {n} " * 60))]
    once, twice = (compact_once(history, 600) for _ in range(2))
    assert once == twice
    assert "ZX4471" in text_of(once)
    assert sum(token_counts(once)) <= 600
