"""`compact report`: what each compaction kept, kept in the ledger, left retrievable, or lost."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from compact.cli import screen
from compact.cli.options import AsJson, ConfigFile, Session, Store
from compact.cli.store import open_store
from compact.core.audit.cost import by_version, dollars

if TYPE_CHECKING:
    from compact.core.audit.cost import CompactionCost
    from compact.core.audit.report import CompactionReport, ReportItem

# Chosen: what fits on a screen; --all and --json have everything.
_EXAMPLES = 20
_TEXT_CHARS = 100
_LINE_CHARS = 160
_ID_CHARS = 24
_STATE_NAMES = {"kept": "kept", "in_ledger": "in ledger", "retrievable": "retrievable", "lost": "lost"}
_COLUMNS = ("kind", *_STATE_NAMES.values())
_EARLIER_COLUMNS = ("version", "tokens before", "after", "messages removed", *_STATE_NAMES.values())
_ITEM_COLUMNS = ("kind", "state", "used by", "message", "text")
_GROUP_COLUMNS = ("message", "kind", "state", "used by", "strings", "which")

OneVersion = Annotated[
    int | None, typer.Option("--version", metavar="N", min=1, help="Only the compaction that made this plan version.")
]
All = Annotated[bool, typer.Option("--all", help="Every string of every compaction.")]


def report(
    session: Session,
    version: OneVersion = None,
    every: All = False,
    store: Store = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Report what each compaction kept and lost.

    Counts specific strings (paths, ids, numbers, names, quotations), the constraints that the user gave, and the
    decisions that were made. Kept: the prompt still contains it. In ledger: it is among the facts of the summary.
    Retrievable: `compact recall` finds it. Lost: nothing does. Regret: what the agent asked for again afterwards. The
    newest compaction is shown in full, earlier ones in one line each.
    """
    with open_store(config, store) as opened:
        opened.session(session)
        with screen.spinner("reading the log"):
            reports = opened.manager.report(session, version=version)
            costs = by_version(opened.manager.cost(session))
    screen.show_warnings(opened.events)
    if as_json:
        data = [
            {
                **one.to_dict(examples=None if every else _EXAMPLES),
                "cost": costs[one.version].to_dict() if one.version in costs else None,
            }
            for one in reports
        ]
        screen.write_json({"session_id": session, "reports": data})
    elif not reports:
        screen.line(f"session {session!r} was never compacted: nothing left its prompt")
    else:
        in_full = reports if every else reports[-1:]
        _show_earlier(reports[: len(reports) - len(in_full)])
        for place, one in enumerate(in_full):
            if place or len(in_full) < len(reports):
                screen.line()
            _show(one, costs.get(one.version), every=every)


def _show_earlier(reports: Sequence[CompactionReport]) -> None:
    """Print one line for each report, and the constraints that the model did not see any more."""
    if not reports:
        return
    rows = [(r.version, r.tokens_before, r.tokens_after, len(r.removed_ids), *_totals(r)) for r in reports]
    screen.table(_EARLIER_COLUMNS, rows)
    for report in reports:
        for failure in report.failures:
            screen.line(f"version {report.version}: {failure}", style="bold red")
        for item in report.missing_constraints:
            _show_constraint(item)
    screen.line("--version N shows one of them in full")


def _show(report: CompactionReport, cost: CompactionCost | None, *, every: bool) -> None:
    size = f"{report.tokens_before:,} → {report.tokens_after:,} tokens"
    removed = f"{screen.quantity(len(report.removed_ids), 'message')} left the prompt"
    screen.line(f"version {report.version}: {size}; {removed}", style="bold")
    screen.line(f"{'because':<13}{report.reason}")
    for failure in report.failures:
        screen.line(f"{'failed':<13}{failure}", style="bold red")
    for topic, text in (*_cost_lines(cost), *_check_lines(report), *_regret_lines(report)):
        screen.line(f"{topic:<13}{text}")
    if not report.items:
        return
    screen.line()
    screen.table(_COLUMNS, list(_rows(report)))
    if report.constraints:
        screen.heading("constraints")
        for item in report.constraints:
            _show_constraint(item)
    if report.decisions:
        screen.heading("decisions")
        for item in report.decisions[: None if every else _EXAMPLES]:
            _show_decision(item)
        if not every and len(report.decisions) > _EXAMPLES:
            screen.line(f"and {len(report.decisions) - _EXAMPLES:,} more; --all lists every decision")
    if every:
        screen.heading("every string")
        screen.table(_ITEM_COLUMNS, [_item_row(item) for item in report.items])
    else:
        _show_missing(report)


def _cost_lines(cost: CompactionCost | None) -> Iterator[tuple[str, str]]:
    """Yield what a compaction cost and saved so far, and what writing its summary took."""
    if cost is None:
        return
    if cost.economics:
        yield "price", str(cost.economics)
        yield from (("", note) for note in cost.economics.notes)
        is_open = cost.net is not None and cost.net < 0
        told = f"{dollars(abs(cost.net or 0))} to go after" if is_open else f"{dollars(cost.net)} saved in"
        yield "so far", f"{told} {screen.quantity(cost.calls_under, 'call')} under this plan"
    bill = cost.summary
    if bill:
        writing = bill.writing
        name = f"code, instead of {writing.instead_of}" if writing.instead_of else writing.summarizer
        tokens = f"{screen.quantity(bill.input_tokens, 'token')} in, {bill.output_tokens:,} out"
        took = f"{screen.quantity(writing.calls, 'call')}, {tokens}{', estimated' if bill.is_estimate else ''}"
        yield "summariser", f"{name}: {took}, {writing.seconds:,.1f} s; {dollars(bill.cost)}"


def _check_lines(report: CompactionReport) -> Iterator[tuple[str, str]]:
    """Yield what the check of the summary found, if there was one."""
    check = report.check
    if check is None:
        return
    if check.required:
        yield "summary", f"checked for {screen.quantity(check.required, 'required fact')}"
    named = {"asked again": check.asked_again, "appended": check.appended, "invented": check.ungrounded}
    for topic, texts in named.items():
        if texts:
            shown = "; ".join(screen.first_line(text, chars=60) for text in texts[:3])
            more = f"; and {len(texts) - 3:,} more" if len(texts) > 3 else ""
            yield topic, f"{len(texts):,}: {shown}{more}"


def _regret_lines(report: CompactionReport) -> Iterator[tuple[str, str]]:
    """Yield how much of what left the agent asked for again, by tool."""
    if not report.regrets:
        return
    removed = screen.quantity(len(report.removed_ids), "removed message")
    yield "regret", f"{len(report.regrets):,} of {removed} asked for again"
    for count in report.regret_counts:
        ways = f"{count.recalls:,} recalled, {count.rereads:,} read again"
        yield (
            "",
            f"{count.source}, {count.action} by {count.strategy}: {ways}; {screen.quantity(count.tokens, 'token')}",
        )


def _rows(report: CompactionReport) -> Iterator[tuple[object, ...]]:
    for kind, counts in report.counts.items():
        yield kind, *(counts[state] for state in _STATE_NAMES)
    yield "all", *_totals(report)


def _totals(report: CompactionReport) -> tuple[int, ...]:
    return tuple(sum(counts[state] for counts in report.counts.values()) for state in _STATE_NAMES)


def _show_constraint(item: ReportItem) -> None:
    style = "" if item.is_in_prompt else "bold red"
    text = " ".join(item.text.split())
    screen.line(f"{_STATE_NAMES[item.state.value]:<13}{text}  ({item.message_id})", style=style)


def _show_decision(item: ReportItem) -> None:
    text = screen.truncate(" ".join(item.text.split()), _LINE_CHARS)
    screen.line(f"{_STATE_NAMES[item.state.value]:<13}{text}  ({item.message_id})")


def _show_missing(report: CompactionReport) -> None:
    """Print what left the prompt, the worst first, by its message; constraints and decisions are printed above."""
    above = {*report.missing_constraints, *report.decisions}
    missing = [item for item in report.items if not item.is_in_prompt and item not in above]
    if not missing:
        return
    groups: dict[tuple[str, str, str, bool], list[ReportItem]] = {}
    for item in missing:
        groups.setdefault((item.message_id, item.kind, item.state.value, item.is_touched), []).append(item)
    rows = [_group_row(group) for group in groups.values()]
    screen.heading(f"{screen.quantity(len(missing), 'string is', 'strings are')} no longer in the prompt")
    screen.table(_GROUP_COLUMNS, rows[:_EXAMPLES])
    if len(rows) > _EXAMPLES:
        screen.line(f"and {screen.quantity(len(rows) - _EXAMPLES, 'more row')}; --all lists every string")
    example = next((item.message_id for item in missing if item.message_id), "")
    if example:
        command = shlex.join(("compact", "recall", report.session_id, example))
        screen.line(f"`{command}` prints a message")


def _group_row(group: Sequence[ReportItem]) -> tuple[object, ...]:
    """Return the row for the strings of one message that are of one kind and in one state."""
    kind, state, user, message, _ = _item_row(group[0])
    texts = ", ".join(" ".join(item.text.split()) for item in group)
    return message, kind, state, user, len(group), screen.truncate(texts, _LINE_CHARS)


def _item_row(item: ReportItem) -> tuple[object, ...]:
    user = "dialogue" if item.is_touched else "tools"
    text = screen.truncate(" ".join(item.text.split()), _TEXT_CHARS)
    return item.kind, _STATE_NAMES[item.state.value], user, screen.truncate(item.message_id, _ID_CHARS), text
