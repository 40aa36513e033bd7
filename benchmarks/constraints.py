"""Whether standing wishes, given in passing, are found and survive a compaction, and what false alarms cost.

    python benchmarks/constraints.py --data FOLDER [--sets fresh first …] [--end-to-end] [--sample N] [--check] [--json]

Each wish of wishes/*.txt is put into real conversations of FOLDER: bare, in small talk, behind a question, as an
aside in a longer message, as a postscript, and in chat style without punctuation; near the top, in the middle, near
the bottom. Printed: the share of wishes that the detector finds verbatim (`found`), that are in the list of a whole
conversation (`listed`), and with --end-to-end that are in the output of a compaction to 12.5 % (`kept`); and how much
of that output the list takes in conversations without a wish. --check fails below 95 % and above 2 %.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from learn_wishes import wishes
from rich.console import Console
from rich.progress import Progress
from transcripts import SHARE, Transcript, false_alarms, read, read_transcripts, text_of

from compact import CompactConfig, CompactManager
from compact.constraints.finder import find_constraints, standing_constraints

SETS = ("last", "fresh", "first", "second", "third")
FLOOR = 0.95
CEILING = 0.02
POSITIONS = {"top": 0.1, "middle": 0.5, "bottom": 0.9}
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_E = TypeVar("_E")


@dataclass(frozen=True, slots=True)
class Case:
    """A wish, as it is said in one conversation."""

    group: str
    wish: str
    framing: str
    position: str
    text: str
    index: int
    transcript: Transcript


def bare(wish: str, _: str) -> tuple[str, str]:
    """The wish is the whole message."""
    return wish, wish


def small_talk(wish: str, _: str) -> tuple[str, str]:
    """Friendly words around it."""
    return wish, f"Morning! Hope you had a nice weekend, mine was too short. {wish} Anyway, let's get going."


def behind_a_question(wish: str, real: str) -> tuple[str, str]:
    """It follows what the person really asked."""
    return wish, f"{real} {wish}"


def aside(wish: str, real: str) -> tuple[str, str]:
    """It stands in the middle of a longer message."""
    sentences = _SENTENCE.split(
        f"{real} I had a look at it yesterday and it was not obvious to me. What do you make of it?"
    )
    half = len(sentences) // 2
    return wish, " ".join([*sentences[:half], wish, *sentences[half:]])


def postscript(wish: str, real: str) -> tuple[str, str]:
    """It is added below."""
    return wish, f"{real}\n\nPS: {wish}"


def chat(wish: str, real: str) -> tuple[str, str]:
    """Lower case, no punctuation at the end of anything."""
    plain = wish.lower().rstrip(".!。")
    return plain, f"{re.sub(r'[.!?]+', '', real[:300].lower())} also {plain}"


FRAMINGS: tuple[Callable[[str, str], tuple[str, str]], ...] = (
    bare,
    small_talk,
    behind_a_question,
    aside,
    postscript,
    chat,
)


def cases(names: Sequence[str], transcripts: Sequence[Transcript]) -> Iterator[Case]:
    """Every wish in every framing at every position, each time in another conversation."""
    number = 0
    for group in names:
        for wish in wishes(group):
            for framing in FRAMINGS:
                for position, share in POSITIONS.items():
                    transcript = transcripts[number * 37 % len(transcripts)]
                    number += 1
                    index, real = _carrier(transcript, share)
                    said, text = framing(wish, real)
                    yield Case(group, said, framing.__name__, position, text, index, transcript)


def _carrier(transcript: Transcript, share: float) -> tuple[int, str]:
    """The place in the conversation, and what the person really said there."""
    places = [i for i, m in enumerate(transcript.messages) if m["role"] == "user" and not m.get("name")]
    if not places:
        return len(transcript.messages), "Please go on."
    wanted = share * len(transcript.messages)
    index = min(places, key=lambda place: (abs(place - wanted), place))
    return index, text_of(transcript.messages[index]).strip()


def injected(case: Case) -> list[dict[str, Any]]:
    """The conversation with the wish in it: in the place of a real message, or, alone, before it."""
    messages = list(case.transcript.messages)
    alone = case.framing in ("bare", "small_talk")
    messages[case.index : case.index + (not alone)] = [{"role": "user", "content": case.text}]
    return [{key: value for key, value in message.items() if key != "name"} for message in messages]


def is_found(case: Case) -> bool:
    """True if the detector finds the wish in its message."""
    return any(case.wish in case.text[start:end] for start, end in find_constraints(case.text))


def is_listed(case: Case) -> bool:
    """True if the wish is on the list of the whole conversation."""
    return any(case.wish in constraint.text for constraint in standing_constraints(read(injected(case))))


def is_kept(case: Case) -> bool:
    """True if the wish is in the output of a compaction to an eighth, the system prompt not counted."""
    messages = injected(case)
    pinned = _tokens([message for message in messages if message["role"] == "system"])
    target = pinned + int(SHARE * (_tokens(messages) - pinned))
    with _manager() as manager:
        output = manager.manual_compact("wish", messages, target_tokens=target)
    return any(case.wish in text_of(message) for message in output)


def _manager() -> CompactManager:
    nowhere = {"state": {"url": "memory:"}, "storage": {"adapter": "none"}, "telemetry": {"exporter": "none"}}
    return CompactManager(CompactConfig(model="gpt-4o", max_context_tokens=1_000_000, **nowhere))


def _tokens(messages: list[dict[str, Any]]) -> int:
    if not messages:
        return 0
    with _manager() as manager:
        manager.preflight("count", messages)
        return manager.status("count").used_tokens


def tracked(items: Sequence[_E], what: str) -> Iterator[_E]:
    """The items, with a progress bar on a terminal and nothing in a pipe."""
    console = Console(stderr=True)
    with Progress(console=console, disable=not console.is_terminal, transient=True) as progress:
        yield from progress.track(items, description=what)


def shares(results: Iterable[tuple[str, bool]]) -> dict[str, float]:
    """For each name the share that is true, and `all`."""
    sorted_out: dict[str, list[bool]] = defaultdict(list)
    for name, result in results:
        sorted_out[name].append(result)
        sorted_out["all"].append(result)
    return {name: sum(values) / len(values) for name, values in sorted_out.items()}


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """All figures."""
    transcripts = read_transcripts(options.data)
    every = list(cases(options.sets, transcripts))
    some = random.Random(0).sample(every, min(options.sample, len(every)))
    tests = [("found", every, is_found), ("listed", some, is_listed)]
    if options.end_to_end:
        tests.append(("kept", some, is_kept))
    report: dict[str, Any] = {}
    for name, chosen, test in tests:
        outcome = [(case, test(case)) for case in tracked(chosen, name)]
        report[name] = {
            "cases": len(outcome),
            **{by: shares((getattr(case, by), ok) for case, ok in outcome) for by in ("group", "framing", "position")},
        }
        if options.misses:
            for case, ok in outcome:
                if not ok:
                    print(
                        f"{name}: {case.framing}/{case.position}: {case.wish!r} in {case.text[:300]!r}", file=sys.stderr
                    )
    alarms = [(t.source, false_alarms(t)) for t in tracked(transcripts, "false alarms")]
    by_source: dict[str, list[float]] = defaultdict(list)
    for source, share in alarms:
        by_source[source].append(share)
        by_source["all"].append(share)
    report["false_alarms"] = {k: {"mean": sum(v) / len(v), "worst": max(v)} for k, v in by_source.items()}
    return report


def show(report: dict[str, Any]) -> None:
    """Print the figures as text."""
    for name in ("found", "listed", "kept"):
        if name not in report:
            continue
        print(f"{name}, of {report[name]['cases']:,} cases")
        for by in ("group", "framing", "position"):
            print("  " + "  ".join(f"{key} {value:.1%}" for key, value in report[name][by].items()))
    print("false alarms, share of the compacted prompt: mean (worst)")
    for source, figures in report["false_alarms"].items():
        print(f"  {source:22} {figures['mean']:6.2%} ({figures['worst']:.1%})")


def failures(report: dict[str, Any]) -> list[str]:
    """What misses its floor."""
    found = [
        f"{name}: {report[name]['group']['all']:.1%}, floor {FLOOR:.0%}"
        for name in ("found", "listed", "kept")
        if name in report and report[name]["group"]["all"] < FLOOR
    ]
    spent = report["false_alarms"]["all"]["mean"]
    return [*found, f"false alarms: {spent:.2%}, ceiling {CEILING:.0%}"] if spent > CEILING else found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="a folder of transcripts, *.jsonl.gz")
    parser.add_argument("--sets", nargs="+", default=list(SETS), help="which wishes")
    parser.add_argument("--sample", type=int, default=600, help="cases for what needs a whole conversation")
    parser.add_argument("--end-to-end", action="store_true", help="compact each of these conversations")
    parser.add_argument("--misses", action="store_true", help="print the wishes that were lost")
    parser.add_argument("--check", action="store_true", help="fail below the floors")
    parser.add_argument("--json", action="store_true", help="print data instead of a table")
    options = parser.parse_args()
    report = measure(options)
    print(json.dumps(report, indent=1)) if options.json else show(report)
    if options.check and (failed := failures(report)):
        sys.exit("below the floor:\n  " + "\n  ".join(failed))


if __name__ == "__main__":
    main()
