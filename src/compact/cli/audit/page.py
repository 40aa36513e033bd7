"""The report as one page of HTML that needs nothing else: no script, no font, no picture from anywhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files

from compact import __version__
from compact.cli.audit.findings import CompactionAudit, FactOutcome, KindCounts, LogAudit
from compact.cli.audit.text import conclusion, dropped_facts, share_of, sizes_of, use_of
from compact.core.plurals import quantity

# Chosen: what a reader looks through; the rest is counted.
_MAX_ROWS = 40
_PLURALS = {"constraint": "constraints", "decision": "decisions", "path": "paths", "id": "ids", "number": "numbers"}


def render_page(audits: Sequence[LogAudit]) -> str:
    """Return the page."""
    template = files("compact.cli.audit").joinpath("page.html").read_text(encoding="utf-8")
    agents = sorted({audit.agent for audit in audits if audit.agent}, key=str.lower)
    whose = (", ".join(agents[:-1]) + " and " if len(agents) > 1 else "") + (agents[-1] if agents else "the agent")
    body = "".join(_session(audit) for audit in audits) or "<p>There is no compaction to audit.</p>"
    lead = "".join(f"<p>{escape(sentence)}</p>" for sentence in (conclusion(audits) if audits else ()))
    values = {"title": f"What {whose} forgot", "lead": lead, "body": body, "version": __version__}
    for name, value in values.items():
        # The title is a name from the log; the others are HTML that is escaped already.
        template = template.replace(f"{{{{{name}}}}}", escape(value) if name == "title" else value)
    return template


def _session(audit: LogAudit) -> str:
    who = escape(f"{audit.agent} {audit.version}".strip() or "transcript")
    session = f" · <span class=mono>{escape(audit.session_id)}</span>" if audit.session_id else ""
    title = f"<h2>{who}{session}</h2><p class=dim>{quantity(audit.messages, 'message')}</p>"
    return f"<section>{title}{''.join(map(_numbered, _with_numbers(audit)))}</section>"


def _with_numbers(audit: LogAudit) -> Iterable[tuple[int, int, CompactionAudit]]:
    return ((number, len(audit.compactions), one) for number, one in enumerate(audit.compactions, start=1))


def _numbered(numbered: tuple[int, int, CompactionAudit]) -> str:
    number, count, one = numbered
    trigger = f", {escape(one.trigger)}" if one.trigger else ""
    head = (
        f"<h3>Compaction {number} of {count}</h3>"
        f"<p class=dim>at {escape(one.place)}, message {one.position:,}{trigger} · {escape(sizes_of(one))}</p>"
    )
    return f"<article>{head}{_bars(one)}{_repeats(one)}{_dropped(one)}{_summary(one)}</article>"


def _bars(one: CompactionAudit) -> str:
    rows = "".join(_bar_row(counts, has_ours=not one.failure) for counts in one.counts)
    legend = "<span class='key own'></span> the agent kept <span class='key ours'></span> Compact keeps"
    titles = ("known", "kept by agent / Compact", "kept of those used later")
    head = f"<tr><th>facts</th><th></th>{''.join(f'<th class=n>{title}</th>' for title in titles)}</tr>"
    return f"<p class=legend>{legend}</p><table class=bars>{head}{rows}</table>"


def _bar_row(counts: KindCounts, *, has_ours: bool) -> str:
    own = _bar("own", counts.kept, counts.known, "the agent kept")
    ours = _bar("ours", counts.kept_by_compact, counts.known, "Compact keeps") if has_ours else ""
    kept = f"{counts.kept:,}" + (f" / {counts.kept_by_compact:,}" if has_ours else "")
    used = f"{counts.used_kept:,}" + (f" / {counts.used_kept_by_compact:,}" if has_ours else "")
    later = f"{used} of {counts.used_later:,}" if counts.used_later else "–"
    name = _PLURALS[counts.kind]
    return (
        f"<tr><th scope=row>{name}</th><td class=bar>{own}{ours}</td>"
        f"<td class=n>{counts.known:,}</td><td class=n>{kept}</td><td class=n>{later}</td></tr>"
    )


def _bar(kind: str, part: int, whole: int, label: str) -> str:
    share = share_of(part, whole)
    return (
        f"<div class=track role=img aria-label='{label} {share}'>"
        f"<i><b class='{kind}' style='width:{share}'></b></i><span>{share}</span></div>"
    )


def _dropped(one: CompactionAudit) -> str:
    facts = dropped_facts(one.facts)
    if not facts:
        return "<p>Nothing that was looked for was dropped.</p>"
    rows = "".join(map(_fact, facts[:_MAX_ROWS]))
    head = f"Dropped: {quantity(len(facts), 'fact')}"
    return f"<details open><summary>{head}</summary><ul>{rows}</ul>{_rest(len(facts))}</details>"


def _fact(fact: FactOutcome) -> str:
    use = use_of(fact)
    marks = f"<b class=bad>{use} later</b>" if use == "used" else f"<b class=bad>{use}</b>" if use else ""
    ours = "<b class=ok>Compact keeps it</b>" if fact.kept_by_compact else ""
    is_prose = fact.kind in ("constraint", "decision")
    text = f"<q>{escape(fact.text)}</q>" if is_prose else f"<code>{escape(fact.text)}</code>"
    again = f"<br><span class=dim>later: <q>{escape(fact.said_again)}</q></span>" if fact.said_again else ""
    return f"<li><span class=kind>{fact.kind}</span> <span>{text} {marks} {ours}{again}</span></li>"


def _repeats(one: CompactionAudit) -> str:
    if not one.repeats:
        return ""
    rows = "".join(
        f"<li><span class=kind>{escape(again.tool)}</span> <span><code>{escape(again.about[:300])}</code> "
        f"<span class=dim>{quantity(again.tokens, 'token')}</span></span></li>"
        for again in one.repeats[:_MAX_ROWS]
    )
    head = f"Looked up again: {quantity(len(one.repeats), 'call')}, {quantity(one.repeated_tokens, 'token')}"
    return f"<details open><summary>{head}</summary><ul>{rows}</ul>{_rest(len(one.repeats))}</details>"


def _rest(count: int) -> str:
    return f"<p class=dim>… and {count - _MAX_ROWS:,} more</p>" if count > _MAX_ROWS else ""


def _summary(one: CompactionAudit) -> str:
    if not one.summary:
        return ""
    return f"<details><summary>The agent's summary</summary><pre>{escape(one.summary)}</pre></details>"
