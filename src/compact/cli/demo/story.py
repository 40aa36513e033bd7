"""Says what happened in the demo and what was checked, topic by topic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from compact.cli import screen
from compact.cli.demo.replay import DemoCompaction, DemoUndo, protected_messages
from compact.core.audit.cost import dollars
from compact.core.facts.text import cut_line, first_line
from compact.core.summary.writing import BY_CODE

if TYPE_CHECKING:
    from compact.cli.demo.replay import DemoResults, Replay
    from compact.core.audit.cost import SessionCost


def change_line(change: DemoCompaction | DemoUndo) -> str:
    """Return one line about a compaction, or about one that was taken back."""
    tokens = f"{change.tokens_before:,} → {change.tokens_after:,} tokens"
    if isinstance(change, DemoUndo):
        return f"undo of compaction {change.number}: {tokens}"
    place = f"compaction {change.number} at message {change.message + 1:,}{', asked for' if change.is_manual else ''}"
    failed = f"; {change.failure.what} FAILED" if change.failure else ""
    return f"{place}: {tokens} ({change.work}), {change.milliseconds:.0f} ms{failed}"


def story(replay: Replay, results: DemoResults) -> Iterator[tuple[str, str]]:
    """Yield what happened, and what was checked, topic by topic."""
    window, total = replay.budget.max_context_tokens, sum(replay.tokens)
    cost = replay.cost()
    yield "session", f"{len(replay.history):,} messages, {total:,} tokens: {total / window:.1f} windows of {window:,}"
    yield "compacted", _compacted(results, cost)
    for compaction in results.failures:
        if failure := compaction.failure:
            yield "failed", f"the {failure.what} of compaction {compaction.number}: {first_line(failure.message)}"
            yield "instead", failure.instead
    for undo in results.undos:
        yield "undone", _undone(undo, results)
    largest = results.largest_sent_tokens
    fits = "never over" if largest <= window else "OVER"
    yield "largest", f"{largest:,} tokens in one prompt, {screen.percentage(largest, window)} of the window: {fits}"
    yield "tool errors", _tool_errors(replay)
    yield "constraints", _constraints(replay, results)
    yield "protected", _protected(replay, results)
    if results.compactions:
        yield "removed", _removed_strings(replay)
    extending, prompts = sum(call.extends_previous for call in results.calls), len(results.calls)
    verb = "extends" if prompts == 1 else "extend"
    yield "cache", f"{extending:,} of {screen.quantity(prompts, 'prompt')} {verb} the one before, byte for byte"
    yield "preflight", f"p50 {results.milliseconds(50):.1f} ms, p99 {results.milliseconds(99):.1f} ms"
    yield "cost", _cost(cost)


def _compacted(results: DemoResults, cost: SessionCost) -> str:
    times = screen.quantity(len(results.compactions), "time")
    written = Counter(bill.writing.summarizer for bill in cost.bills)
    written.pop(BY_CODE, None)
    summaries = "".join(
        f"; {screen.quantity(count, 'summary', 'summaries')} by {model}, which a script plays"
        for model, count in written.items()
    )
    return f"{times}, with {screen.quantity(len(results.calls), 'model call')}{summaries}"


def _undone(undo: DemoUndo, results: DemoResults) -> str:
    tokens = f"{undo.tokens_before:,} → {undo.tokens_after:,} tokens"
    following = next((done for done in results.compactions if done.number == undo.number + 1), None)
    if following is None:
        return f"compaction {undo.number}: {tokens}"
    summary = ", with a summary by the model" if following.has_summary and not following.failure else ""
    return f"compaction {undo.number}: {tokens}; the next one was at message {following.message + 1:,}{summary}"


def _tool_errors(replay: Replay) -> str:
    """Return how many tool calls of the session failed, by tool, and the newest of them."""
    uses = replay.tool_uses()
    failed = [use for use in uses if use.failure]
    if not failed:
        return f"none in {screen.quantity(len(uses), 'call')}"
    tools = ", ".join(f"{name} {count}" for name, count in Counter(use.call.name for use in failed).items())
    newest, calls = failed[-1], screen.quantity(len(uses), "call")
    return f"{len(failed):,} of {calls} ({tools}), the newest: {newest.call.name}, {cut_line(newest.failure)}"


def _constraints(replay: Replay, results: DemoResults) -> str:
    """Return whether every prompt had what the person had asked to hold by then."""
    given, missing = replay.constraints, results.missing_constraints
    if not missing:
        return f"{len(given)} of {len(given)} kept: each in every prompt since it was given, word for word"
    lost = "; ".join(f"{text!r} MISSING in {screen.quantity(count, 'prompt')}" for text, count in missing.items())
    return f"{len(given) - len(missing)} of {len(given)} kept: {lost}"


def _protected(replay: Replay, results: DemoResults) -> str:
    label = protected_messages(replay.history)[0]["meta"]["label"]
    missing = [call for call in results.calls if not call.has_protected]
    if missing:
        return f"{label}: MISSING in {screen.quantity(len(missing), 'prompt')}"
    return f"{label}: in every prompt since it was given, verbatim"


def _removed_strings(replay: Replay) -> str:
    """Return where the paths, ids, numbers and names are whose messages left the prompt."""
    from compact.core.audit.report import EntityState

    reports = replay.reports()
    totals = {state: sum(report.total(state) for report in reports) for state in EntityState}
    in_prompt = totals[EntityState.KEPT] + totals[EntityState.IN_LEDGER]
    retrievable, lost = totals[EntityState.RETRIEVABLE], totals[EntityState.LOST]
    strings = screen.quantity(sum(totals.values()), "string")
    where = f"{in_prompt:,} still in the prompt, {retrievable:,} retrievable, {lost:,} lost"
    return f"{strings} of messages that left the prompt: {where}"


def _cost(cost: SessionCost) -> str:
    """Return what the session cost, what it would have cost, and what was saved, as every other page has it."""
    models = ", ".join(cost.models)
    if cost.total is None:
        return f"not known: {models} has no price in the list"
    spent = f"{dollars(cost.total)} for {models}, of which {dollars(cost.summaries)} for summaries"
    too_large = sum(not call.fits_uncompacted for call in cost.calls)
    unsendable = f" ({screen.quantity(too_large, 'prompt')} would not have fitted)" if too_large else ""
    return f"{spent}; {dollars(cost.uncompacted)} without compaction{unsendable}: saved {dollars(cost.saved)}"
