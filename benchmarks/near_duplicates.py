"""What recognising near duplicates saves: tokens beyond those that exact duplicates save, on recorded sessions.

    python benchmarks/near_duplicates.py [--show N] [--time]    COMPACT_DATA names the folder of transcripts

For each domain: the share of all tokens that `deduplicate` frees as it is, what `near_duplicates` frees beyond it, and
in how many sessions it frees anything. `--show` prints some of the pairs, every n-th, to be looked at: both calls, and
what stands for the older result. `--time` compacts every session without it and with it, and tells the CPU time.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from fidelity.transcripts import domain_of
from transcripts import data_folder, read, read_transcripts

from compact import CompactConfig, CompactManager
from compact.core.messages.groups import calls_answered, group_messages
from compact.core.messages.message import Message
from compact.core.plan.layers import KeepRules
from compact.core.plan.plan import ClearRecord, CompactionPlan
from compact.core.plan.strategy import Goal
from compact.core.plan.stubs import render_cleared
from compact.core.planning.coordinator import CompactionCoordinator
from compact.strategies import DeduplicateStrategy
from compact.tokens import get_tokenizer

# No limit but that of the strategy: everything it proposes is taken.
_EVERYTHING = Goal(target_tokens=0, settle_tokens=10**12, ceiling_tokens=10**12)
_SHOWN_CHARS = 1_200


@dataclass(slots=True)
class Saving:
    """What was counted for a domain."""

    sessions: int = 0
    sessions_saving: int = 0
    tokens: int = 0
    exact_tokens: int = 0
    near_tokens: int = 0
    pairs: int = 0
    seconds: float = 0.0
    near_seconds: float = 0.0

    def add(self, other: Saving) -> None:
        """Add what was counted elsewhere."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


def main() -> None:
    """Print the table, and pairs if they are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", type=int, default=0, metavar="N", help="print N pairs")
    parser.add_argument("--time", action="store_true", help="compact every session with and without it")
    arguments = parser.parse_args()
    savings: dict[str, Saving] = defaultdict(Saving)
    pairs: list[str] = []
    for number, transcript in enumerate(read_transcripts(data_folder())):
        saving, found = measure(transcript.messages)
        if arguments.time:
            _add_times(saving, transcript.messages)
        savings[domain_of(transcript.source)].add(saving)
        pairs += [f"--- {transcript.source}, session {number}\n{pair}" for pair in found]
    _print_table(savings)
    for pair in pairs[:: max(1, len(pairs) // arguments.show)] if arguments.show else ():
        print(f"\n{pair}")


def measure(items: tuple[dict[str, Any], ...]) -> tuple[Saving, list[str]]:
    """Return what both kinds of duplicates save in a session, and the near ones as text."""
    messages = read(items)
    messages = [replace(message, id=f"m{place}") for place, message in enumerate(messages)]
    tokenizer = get_tokenizer("gpt-4o")
    tokens = [tokenizer.count_message(message) for message in messages]

    def plan(*, near_duplicates: bool) -> tuple[CompactionPlan, int]:
        coordinator = CompactionCoordinator([DeduplicateStrategy(near_duplicates=near_duplicates)])
        result = coordinator.coordinate(
            messages,
            CompactionPlan("s"),
            tokens=tokens,
            count_message=tokenizer.count_message,
            rules=KeepRules(),
            goal=_EVERYTHING,
        )
        return result.plan, result.tokens_freed

    exact, exact_freed = plan(near_duplicates=False)
    near, near_freed = plan(near_duplicates=True)
    known = {record.span.first for record in exact.records}
    records = [r for r in near.clearings if r.span.first not in known]
    saving = Saving(
        sessions=1,
        sessions_saving=bool(records),
        tokens=sum(tokens),
        exact_tokens=exact_freed,
        near_tokens=near_freed - exact_freed,
        pairs=len(records),
    )
    return saving, list(_as_text(messages, records))


def _add_times(saving: Saving, items: tuple[dict[str, Any], ...]) -> None:
    """Add the CPU time of a compaction to half of the session, without near duplicates and with them."""

    def compaction_seconds(*, near_duplicates: bool) -> float:
        config = CompactConfig(
            max_context_tokens=saving.tokens + 4_000,
            state={"url": "memory:"},
            storage={"adapter": "none"},
            telemetry={"exporter": "none"},
            strategies={"deduplicate": {"near_duplicates": near_duplicates}},
        )
        with CompactManager(config) as manager:
            started = time.process_time()
            manager.manual_compact("s", list(items))
            return time.process_time() - started

    compaction_seconds(near_duplicates=False)  # the first fills caches that the others find full
    saving.seconds += compaction_seconds(near_duplicates=False)
    saving.near_seconds += compaction_seconds(near_duplicates=True)


def _as_text(messages: list[Message], records: list[ClearRecord]) -> Iterator[str]:
    calls = calls_answered(messages, group_messages(messages))
    places = {message.id: place for place, message in enumerate(messages)}
    for record in records:
        place = places[record.span.first]
        later = next(word for word in record.reason.replace(",", " ").replace(";", " ").split() if word in places)
        asked, asked_later = (f"{calls[i].name}({calls[i].arguments[:200]})" for i in (place, places[later]))
        shown = render_cleared(messages[place], record).text[:_SHOWN_CHARS]
        size = f"{record.tokens_before:,} -> {record.tokens_after:,} tokens"
        yield f"{asked}\nlater: {asked_later}\n{size}\n{shown}"


def _print_table(savings: dict[str, Saving]) -> None:
    total = Saving()
    for saving in savings.values():
        total.add(saving)
    print("| domain | sessions | tokens | exact | near, beyond | sessions with any | pairs | seconds | with near |")
    print("|---|---|---|---|---|---|---|---|---|")
    for domain, saving in (*sorted(savings.items()), ("all", total)):
        exact, near = (f"{count / max(1, saving.tokens):.2%}" for count in (saving.exact_tokens, saving.near_tokens))
        share = f"{saving.sessions_saving / saving.sessions:.0%}"
        figures = (domain, saving.sessions, f"{saving.tokens:,}", exact, near, share, saving.pairs)
        print(f"| {' | '.join(map(str, figures))} | {saving.seconds:.1f} | {saving.near_seconds:.1f} |")


if __name__ == "__main__":
    main()
