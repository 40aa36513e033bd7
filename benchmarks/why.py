"""How long it takes to find where a phrase is in a long session, and which of its calls went out without it.

    python benchmarks/why.py [--messages 10000] [--calls 1000] [--store sqlite|memory] [--json]

Writes a session with a compaction every 25 calls, and prints the milliseconds for a rare word, a common one, one that
is everywhere and one that is nowhere: the first question, which reads the session, and those after it.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from dataclasses import replace

from compact.assembly.storage import build_store
from compact.config import CompactConfig
from compact.core.audit.records import Commit, ModelCall, SessionHead, StoredMessage
from compact.core.audit.store import CompactionStore
from compact.core.facts.ledger import Ledger
from compact.core.messages.entries import read_entry
from compact.core.messages.message import Message
from compact.core.plan.plan import ClearRecord, CompactionPlan, Record, SpanReference, SummarizationRecord
from compact.core.summary.summary import StructuredSummary
from compact.recall.phrase_finder import PhraseFinder
from compact.testing import assistant, tool_exchange, user

SESSION = "long"
CALLS_PER_PLAN = 25
# How many of the newest messages a compaction leaves as they are, and how many of the others it clears.
KEPT_MESSAGES = 200
CLEARED_MESSAGES = 100
PHRASES = {"rare": "ORD-177 ", "common": "rounds", "everywhere": "e", "nowhere": "never said"}
GOAL_MS = 300.0


def message_at(number: int) -> Message:
    """Return one message of a coding session: a question, a call, its result, an answer."""
    turn, lines = number // 4, "\n".join(f"    value_{number}_{n} = cart.line({n})" for n in range(24))
    wire = (
        user(f"Step {turn}: order ORD-{turn} fails in src/cart_{turn % 7}.py, please look."),
        tool_exchange(f"call-{turn}", "", tool="read_file", path=f"src/cart_{turn % 7}.py")[0],
        {"role": "tool", "tool_call_id": f"call-{turn}", "content": f"def total_{number}(cart):\n{lines}"},
        assistant(f"I found it: line {number} rounds twice.\nDecision: keep Decimal in release 4.{turn}."),
    )[number % 4]
    return replace(read_entry(wire, "message"), id=f"m{number + 1}")


def plan_after(number: int, version: int) -> CompactionPlan:
    """Return a plan that summarises what is old and clears the results between that and what is new."""
    old = max(1, number - KEPT_MESSAGES - CLEARED_MESSAGES)
    summary = StructuredSummary(ledger=Ledger(), narrative=f"{old} messages of steady work on orders.")
    records: list[Record] = [
        SummarizationRecord(
            span=SpanReference(tuple(f"m{n + 1}" for n in range(old))),
            strategy="summarize",
            reason=f"{old} old messages",
            version=version,
            summary=summary,
        )
    ]
    for n in range(old, max(old, number - KEPT_MESSAGES)):
        if n % 4 == 2:
            span = SpanReference((f"m{n + 1}",))
            record = ClearRecord(
                span=span, strategy="clear", reason="an old result", tokens_before=400, kept=((0, 40),)
            )
            records.append(record)
    return CompactionPlan(SESSION, version, tuple(records), reason="the trigger")


def write_session(store: CompactionStore, *, messages: int, calls: int) -> None:
    """Write a session call by call, as an engine does."""
    head, written, version = SessionHead(), 0, 0
    for number in range(1, calls + 1):
        until = messages * number // calls
        entries = tuple(StoredMessage(n + 1, message_at(n), 100) for n in range(written, until))
        plan = None
        if number % CALLS_PER_PLAN == 0 and until > KEPT_MESSAGES + CLEARED_MESSAGES:
            version += 1
            plan = plan_after(until, version)
        call = ModelCall(
            turn_number=number,
            plan_version=version,
            summary_version=version,
            last_seq=until,
            messages=0,
            evicted=0,
            tokens_estimated=0,
        )
        head = store.commit(Commit(session_id=SESSION, expected=head, messages=entries, plan=plan, call=call))
        written = until


def measure(store: CompactionStore) -> dict[str, float]:
    """Return the milliseconds of the first question, and of one for each kind of phrase."""
    finder = PhraseFinder(store, store)
    taken = {"the first": _milliseconds(finder, PHRASES["rare"])}
    for kind, phrase in PHRASES.items():
        taken[kind] = min(_milliseconds(finder, phrase) for _ in range(3))
    return taken


def _milliseconds(finder: PhraseFinder, phrase: str) -> float:
    started = time.perf_counter()
    finder.find(SESSION, phrase, limit=100)
    return 1000 * (time.perf_counter() - started)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--calls", type=int, default=1_000)
    parser.add_argument("--store", choices=["sqlite", "memory"], default="sqlite")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = "memory:" if options.store == "memory" else f"sqlite:///{folder}/state.db"
        store = build_store(CompactConfig(state={"url": url}))
        write_session(store, messages=options.messages, calls=options.calls)
        taken = measure(store)
        store.close()
    if options.json:
        print(json.dumps(taken))
        return
    print(f"{options.messages:,} messages, {options.calls:,} calls, {options.store}; the goal is {GOAL_MS:.0f} ms")
    for kind, milliseconds in taken.items():
        print(f"{kind:<12}{milliseconds:8.1f} ms")


if __name__ == "__main__":
    main()
