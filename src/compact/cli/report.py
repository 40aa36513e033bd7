"""`compact report`: what each compaction kept, kept in the ledger, left to be recalled, or lost."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from compact.cli import screen
from compact.cli.options import AsJson, ConfigFile, Session, Store
from compact.cli.settings import open_store

if TYPE_CHECKING:
    from compact.core.report import CompactionReport, ReportItem

_EXAMPLES = 20
_TEXT_CHARS = 100
_ID_CHARS = 24
_WORDS = {"kept": "kept", "in_ledger": "in ledger", "retrievable": "retrievable", "lost": "lost"}
_COLUMNS = ("kind", *_WORDS.values())
_ITEM_COLUMNS = ("kind", "state", "used by", "message", "text")

OneVersion = Annotated[
    int | None, typer.Option("--version", metavar="N", min=1, help="Only the compaction that made this plan version.")
]
Every = Annotated[bool, typer.Option("--all", help="List every string, not only the worst.")]


def report(
    session: Session,
    version: OneVersion = None,
    every: Every = False,
    store: Store = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Say what became of everything that compactions took out.

    Per compaction: paths, ids, numbers and other specific strings, and what the user asked to hold. Kept is in the
    prompt as it stands, in ledger is in the list of facts of its summary; `compact recall` brings back the rest.
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
        for place, one in enumerate(reports):
            if place:
                screen.line()
            _show(one, every=every)


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
    yield "checked", f"{screen.counted(check.required, 'fact')} a summary may not lack"
    named = {"asked": check.asked_again, "appended": check.appended, "invented": check.ungrounded}
    for topic, texts in named.items():
        if texts:
            shown = "; ".join(screen.first_line(text, chars=60) for text in texts[:3])
            more = f"; and {len(texts) - 3:,} more" if len(texts) > 3 else ""
            yield topic, f"{len(texts):,}: {shown}{more}"


def _rows(report: CompactionReport) -> Iterator[tuple[object, ...]]:
    totals = dict.fromkeys(_WORDS, 0)
    for kind, counts in report.counts.items():
        yield kind, *(counts[state] for state in _WORDS)
        totals = {state: total + counts[state] for state, total in totals.items()}
    yield "all", *totals.values()


def _show_wish(item: ReportItem) -> None:
    style = "" if item.is_in_prompt else "bold red"
    text = " ".join(item.text.split())
    screen.line(f"{_WORDS[item.state.value]:<13}{text}  ({item.message_id})", style=style)


def _show_missing(report: CompactionReport) -> None:
    """What the model does not see any more, the worst first; wishes are told above."""
    missing = [item for item in report.items if not item.is_in_prompt and item not in report.missing_constraints]
    if not missing:
        return
    shown = missing[:_EXAMPLES]
    count = screen.counted(len(missing), "string is", "strings are")
    rest = "" if len(shown) == len(missing) else f", the {len(shown)} most telling of which are; --all has every one"
    screen.heading(f"{count} not in the prompt any more{rest}")
    screen.table(_ITEM_COLUMNS, [_item_row(item) for item in shown])
    example = next((item.message_id for item in shown if item.message_id), "")
    if example:
        command = shlex.join(("compact", "recall", report.session_id, example))
        screen.line(f"`{command}` brings a message back")


def _item_row(item: ReportItem) -> tuple[object, ...]:
    user = "dialogue" if item.is_touched else "tools"
    text = screen.clipped(" ".join(item.text.split()), _TEXT_CHARS)
    return item.kind, _WORDS[item.state.value], user, screen.clipped(item.message_id, _ID_CHARS), text
