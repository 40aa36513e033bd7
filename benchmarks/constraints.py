"""Whether constraints, set in passing, are found and survive a compaction, and what false alarms cost.

    python benchmarks/constraints.py [--data FOLDER] [--sets held_out set_1 …] [--end-to-end] [--sample N] [--check]

Each constraint of constraint_examples/ is put into real conversations of FOLDER (by default the folder that
COMPACT_DATA names, or shared/data beside the checkout): bare, in small talk, behind a question, as an aside in a longer
message, as a postscript, and in chat style without punctuation; near the top, in the middle, near the bottom. Printed:
the share of constraints that are found verbatim (`found`), that are in the list of a whole conversation (`listed`), and
with --end-to-end that are in the output of a compaction to 12.5 % (`kept`). And of conversations into which nothing was
put: how many constraints are found and kept per 100 messages that people typed, how much of the output they take, and
how long finding takes. --check fails below 95 % and above 2 %.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from learn_constraints import example_lines
from rich.console import Console
from rich.progress import Progress
from transcripts import (
    SHARE,
    Transcript,
    data_folder,
    false_alarm_share,
    read,
    read_transcripts,
    text_of,
    without_harness,
)

from compact import CompactConfig, CompactManager
from compact.constraints import LearnedConstraints

SETS = ("held_out", "set_4", "set_1", "set_2", "set_3")
FLOOR = 0.95
CEILING = 0.02
FINDER = LearnedConstraints()
POSITIONS = {"top": 0.1, "middle": 0.5, "bottom": 0.9}
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_E = TypeVar("_E")


@dataclass(frozen=True, slots=True)
class Case:
    """A constraint, as it is said in one conversation."""

    group: str
    constraint: str
    framing: str
    position: str
    text: str
    index: int
    transcript: Transcript


def bare(constraint: str, _: str) -> tuple[str, str]:
    """Return the constraint as the whole message."""
    return constraint, constraint


def small_talk(constraint: str, _: str) -> tuple[str, str]:
    """Return it with friendly words around it."""
    return (
        constraint,
        f"Morning! Hope you had a nice weekend, mine was too short. {constraint} Anyway, let's get going.",
    )


def behind_a_question(constraint: str, real: str) -> tuple[str, str]:
    """Return it behind what the person really asked."""
    return constraint, f"{real} {constraint}"


def aside(constraint: str, real: str) -> tuple[str, str]:
    """Return it in the middle of a longer message."""
    sentences = _SENTENCE.split(
        f"{real} I had a look at it yesterday and it was not obvious to me. What do you make of it?"
    )
    half = len(sentences) // 2
    return constraint, " ".join([*sentences[:half], constraint, *sentences[half:]])


def postscript(constraint: str, real: str) -> tuple[str, str]:
    """Return it below what the person really asked."""
    return constraint, f"{real}\n\nPS: {constraint}"


def chat(constraint: str, real: str) -> tuple[str, str]:
    """Return it in lower case, without punctuation at the end of anything."""
    plain = constraint.lower().rstrip(".!。")
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
    """Yield every constraint in every framing at every position, each time in another conversation."""
    number = 0
    for group in names:
        for constraint in example_lines(group):
            for framing in FRAMINGS:
                for position, share in POSITIONS.items():
                    transcript = transcripts[number * 37 % len(transcripts)]
                    number += 1
                    index, real = _carrier(transcript, share)
                    said, text = framing(constraint, real)
                    yield Case(group, said, framing.__name__, position, text, index, transcript)


def _carrier(transcript: Transcript, share: float) -> tuple[int, str]:
    """Return the place in the conversation, and what the person really said there."""
    places = [i for i, m in enumerate(transcript.messages) if m["role"] == "user" and not m.get("name")]
    if not places:
        return len(transcript.messages), "Please go on."
    wanted = share * len(transcript.messages)
    index = min(places, key=lambda place: (abs(place - wanted), place))
    return index, text_of(transcript.messages[index]).strip()


def injected(case: Case) -> list[dict[str, Any]]:
    """Return the conversation with the constraint in it: in the place of a real message, or, alone, before it."""
    messages = list(case.transcript.messages)
    alone = case.framing in ("bare", "small_talk")
    messages[case.index : case.index + (not alone)] = [{"role": "user", "content": case.text}]
    return [{key: value for key, value in message.items() if key != "name"} for message in messages]


def is_found(case: Case) -> bool:
    """Return True if the constraint is found in its message."""
    return any(case.constraint in case.text[start:end] for start, end in FINDER.find(case.text))


def is_listed(case: Case) -> bool:
    """Return True if the constraint is in the list of the whole conversation."""
    return any(case.constraint in constraint.text for constraint in FINDER.standing(read(injected(case))))


def is_kept(case: Case) -> bool:
    """Return True if the constraint is in the output of a compaction to an eighth, the system prompt not counted."""
    messages = injected(case)
    pinned = _tokens([message for message in messages if message["role"] == "system"])
    target = pinned + int(SHARE * (_tokens(messages) - pinned))
    with _manager() as manager:
        output = manager.manual_compact("constraint", messages, target_tokens=target)
    return any(case.constraint in text_of(message) for message in output)


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
    """Yield the items, with a progress bar on a terminal and nothing in a pipe."""
    console = Console(stderr=True)
    with Progress(console=console, disable=not console.is_terminal, transient=True) as progress:
        yield from progress.track(items, description=what)


def shares(results: Iterable[tuple[str, bool]]) -> dict[str, float]:
    """Return the share that is true for each name, and for `all`."""
    sorted_out: dict[str, list[bool]] = defaultdict(list)
    for name, result in results:
        sorted_out[name].append(result)
        sorted_out["all"].append(result)
    return {name: sum(values) / len(values) for name, values in sorted_out.items()}


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Return all figures."""
    transcripts = read_transcripts(options.data)
    if not transcripts:
        sys.exit(f"no transcripts in {options.data}: set COMPACT_DATA to the folder that holds *.jsonl.gz")
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
                        f"{name}: {case.framing}/{case.position}: {case.constraint!r} in {case.text[:300]!r}",
                        file=sys.stderr,
                    )
    alarms = [(t.source, false_alarm_share(t, FINDER)) for t in tracked(transcripts, "false alarms")]
    by_source: dict[str, list[float]] = defaultdict(list)
    for source, share in alarms:
        by_source[source].append(share)
        by_source["all"].append(share)
    report["false_alarms"] = {k: {"mean": sum(v) / len(v), "worst": max(v)} for k, v in by_source.items()}
    report["messages"] = per_message(transcripts)
    return report


def per_message(transcripts: Sequence[Transcript]) -> dict[str, float]:
    """Return how many constraints are found and kept per 100 messages that people typed, and how long finding takes."""
    typed = [text for transcript in transcripts for text in transcript.typed]
    began = time.process_time()
    found = sum(len(FINDER.find(text)) for text in typed)
    seconds = time.process_time() - began
    kept = sum(len(FINDER.standing(read(without_harness(transcript)))) for transcript in transcripts)
    return {
        "found_per_100": 100 * found / len(typed),
        "kept_per_100": 100 * kept / len(typed),
        "milliseconds": 1000 * seconds / len(typed),
    }


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
    print("in messages that people typed, nothing put into them")
    print(
        "  found {found_per_100:.1f}, kept {kept_per_100:.1f} per 100; {milliseconds:.2f} ms each".format(
            **report["messages"]
        )
    )


def failures(report: dict[str, Any]) -> list[str]:
    """Return what misses its floor."""
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
    parser.add_argument("--data", type=Path, default=data_folder(), help="a folder of transcripts, *.jsonl.gz")
    parser.add_argument("--sets", nargs="+", default=list(SETS), help="which constraints")
    parser.add_argument("--sample", type=int, default=600, help="cases for what needs a whole conversation")
    parser.add_argument("--end-to-end", action="store_true", help="compact each of these conversations")
    parser.add_argument("--misses", action="store_true", help="print the constraints that were lost")
    parser.add_argument("--check", action="store_true", help="fail below the floors")
    parser.add_argument("--json", action="store_true", help="print data instead of a table")
    options = parser.parse_args()
    report = measure(options)
    print(json.dumps(report, indent=1)) if options.json else show(report)
    if options.check and (failed := failures(report)):
        sys.exit("below the floor:\n  " + "\n  ".join(failed))


if __name__ == "__main__":
    main()
