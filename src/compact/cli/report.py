"""`compact report`: what each compaction kept, kept in the ledger, left to be recalled, or lost."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from compact.cli import screen
from compact.cli.options import AsJson, ConfigFile, Session, Store
from compact.cli.settings import open_store

if TYPE_CHECKING:
    from compact.core.audit.report import CompactionReport, ReportItem

_EXAMPLES = 20
_TEXT_CHARS = 100
_LINE_CHARS = 160
_ID_CHARS = 24
_WORDS = {"kept": "kept", "in_ledger": "in ledger", "retrievable": "retrievable", "lost": "lost"}
_COLUMNS = ("kind", *_WORDS.values())
_EARLIER_COLUMNS = ("version", "tokens before", "after", "messages gone", *_WORDS.values())
_ITEM_COLUMNS = ("kind", "state", "used by", "message", "text")
_GROUP_COLUMNS = ("message", "kind", "state", "used by", "strings", "which")

OneVersion = Annotated[
    int | None, typer.Option("--version", metavar="N", min=1, help="Only the compaction that made this plan version.")
]
Every = Annotated[bool, typer.Option("--all", help="All of every compaction, string by string.")]


def report(
    session: Session,
    version: OneVersion = None,
    every: Every = False,
    store: Store = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Say what became of everything that compactions took out.

    Counted are specific strings (paths, ids, numbers, names, quotations), and whatever the user asked to hold. Kept
    means that the prompt still shows it, in ledger that it stands among the facts of the summary, retrievable that
    `compact recall` brings it back, lost that nothing does. Of several compactions the newest is told in full.
    """
    with open_store(config, store) as opened:
        opened.session(session)
        with screen.working("reading the log"):
            reports = opened.manager.report(session, version=version)
    screen.warn_about(opened.events)
    if as_json:
        data = [one.to_dict(examples=None if every else _EXAMPLES) for one in reports]
        screen.write_json({"session_id": session, "reports": data})
    elif not reports:
        screen.line(f"session {session!r} was never compacted: nothing has left its prompt")
    else:
        in_full = reports if every else reports[-1:]
        _show_earlier(reports[: len(reports) - len(in_full)])
        for place, one in enumerate(in_full):
            if place or len(in_full) < len(reports):
                screen.line()
            _show(one, every=every)


def _show_earlier(reports: Sequence[CompactionReport]) -> None:
    """One line each, and whatever wish the model did not see any more."""
    if not reports:
        return
    rows = [(r.version, r.tokens_before, r.tokens_after, len(r.removed_ids), *_totals(r)) for r in reports]
    screen.table(_EARLIER_COLUMNS, rows)
    for report in reports:
        for item in report.missing_constraints:
            _show_wish(item)
    screen.line("--version N tells one of them in full")


def _show(report: CompactionReport, *, every: bool) -> None:
    size = f"{report.tokens_before:,} → {report.tokens_after:,} tokens"
    gone = f"{screen.counted(len(report.removed_ids), 'message')} left the prompt"
    screen.line(f"version {report.version}: {size}; {gone}", style="bold")
    screen.line(f"because  {report.reason}")
    for topic, text in _checked(report):
        screen.line(f"{topic:<9}{text}")
    if not report.items:
        return
    screen.line()
    screen.table(_COLUMNS, list(_rows(report)))
    if report.constraints:
        screen.heading("standing wishes")
        for item in report.constraints:
            _show_wish(item)
    if every:
        screen.heading("every string")
        screen.table(_ITEM_COLUMNS, [_item_row(item) for item in report.items])
    else:
        _show_missing(report)


def _checked(report: CompactionReport) -> Iterator[tuple[str, str]]:
    """What checking the summary came to, if somebody told it."""
    check = report.check
    if check is None:
        return
    yield "summary", f"checked for {screen.counted(check.required, 'fact')} that it must have"
    named = {"asked": check.asked_again, "appended": check.appended, "invented": check.ungrounded}
    for topic, texts in named.items():
        if texts:
            shown = "; ".join(screen.first_line(text, chars=60) for text in texts[:3])
            more = f"; and {len(texts) - 3:,} more" if len(texts) > 3 else ""
            yield topic, f"{len(texts):,}: {shown}{more}"


def _rows(report: CompactionReport) -> Iterator[tuple[object, ...]]:
    for kind, counts in report.counts.items():
        yield kind, *(counts[state] for state in _WORDS)
    yield "all", *_totals(report)


def _totals(report: CompactionReport) -> tuple[int, ...]:
    return tuple(sum(counts[state] for counts in report.counts.values()) for state in _WORDS)


def _show_wish(item: ReportItem) -> None:
    style = "" if item.is_in_prompt else "bold red"
    text = " ".join(item.text.split())
    screen.line(f"{_WORDS[item.state.value]:<13}{text}  ({item.message_id})", style=style)


def _show_missing(report: CompactionReport) -> None:
    """What the model does not see any more, the worst first, by the message that holds it; wishes are told above."""
    missing = [item for item in report.items if not item.is_in_prompt and item not in report.missing_constraints]
    if not missing:
        return
    groups: dict[tuple[str, str, str, bool], list[ReportItem]] = {}
    for item in missing:
        groups.setdefault((item.message_id, item.kind, item.state.value, item.is_touched), []).append(item)
    rows = [_group_row(group) for group in groups.values()]
    screen.heading(f"{screen.counted(len(missing), 'string is', 'strings are')} not in the prompt any more")
    screen.table(_GROUP_COLUMNS, rows[:_EXAMPLES])
    if len(rows) > _EXAMPLES:
        screen.line(f"and {len(rows) - _EXAMPLES:,} more rows; --all lists every string")
    example = next((item.message_id for item in missing if item.message_id), "")
    if example:
        command = shlex.join(("compact", "recall", report.session_id, example))
        screen.line(f"`{command}` brings a message back")


def _group_row(group: Sequence[ReportItem]) -> tuple[object, ...]:
    """The strings of one message that are of one kind and in one state."""
    kind, state, user, message, _ = _item_row(group[0])
    texts = ", ".join(" ".join(item.text.split()) for item in group)
    return message, kind, state, user, len(group), screen.clipped(texts, _LINE_CHARS)


def _item_row(item: ReportItem) -> tuple[object, ...]:
    user = "dialogue" if item.is_touched else "tools"
    text = screen.clipped(" ".join(item.text.split()), _TEXT_CHARS)
    return item.kind, _WORDS[item.state.value], user, screen.clipped(item.message_id, _ID_CHARS), text
