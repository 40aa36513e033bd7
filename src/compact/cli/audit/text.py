"""The report on a terminal and in a pipe."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from compact.cli import screen
from compact.cli.audit.findings import CompactionAudit, FactOutcome, KindCounts, LogAudit

_COLUMNS = ("fact", "known", "kept", "by Compact", "used later", "of these kept", "by Compact")


def show(audits: Sequence[LogAudit], limit: int) -> None:
    """Print what each compaction forgot; lists have at most so many rows."""
    for audit in audits:
        for number, one in enumerate(audit.compactions, start=1):
            screen.heading(title_of(audit, number, one))
            screen.line(sizes_of(one))
            rows = [*map(_row, one.counts), _row(one.total)]
            screen.table(_COLUMNS, rows)
            _show_dropped(one, limit)
            _show_repeats(one, limit)
    screen.line()
    for sentence in conclusion(audits):
        screen.line(sentence, style="bold")


def title_of(audit: LogAudit, number: int, one: CompactionAudit) -> str:
    """Return which compaction it is."""
    agent = f"{audit.agent} {audit.version}".strip()
    trigger = f", {one.trigger}" if one.trigger else ""
    count = f"compaction {number} of {len(audit.compactions)}"
    return f"{agent + ', ' if agent else ''}{count} ({audit.source}, {one.place}{trigger})"


def sizes_of(one: CompactionAudit) -> str:
    """Return how large the prompt was, how large it became, and ours."""
    ours = f"Compact's does not fit in there: {one.failure}" if one.failure else f"Compact's: {one.tokens_by_compact:,}"
    return f"{one.tokens_before:,} → {one.tokens_after:,} tokens; {ours}"


def _row(counts: KindCounts) -> tuple[object, ...]:
    return (
        counts.kind,
        counts.known,
        counts.kept,
        counts.kept_by_compact,
        counts.used_later,
        counts.used_kept,
        counts.used_kept_by_compact,
    )


def dropped_facts(facts: Iterable[FactOutcome]) -> list[FactOutcome]:
    """Return what was dropped: what a person said again, other constraints, then what was used later."""
    order = {"constraint": 0, "decision": 1, "path": 2, "id": 3, "number": 4}
    dropped = [fact for fact in facts if not fact.kept]
    return sorted(
        dropped, key=lambda fact: (not fact.said_again, fact.kind != "constraint", not fact.is_missed, order[fact.kind])
    )


def _show_dropped(one: CompactionAudit, limit: int) -> None:
    dropped = dropped_facts(one.facts)
    if not dropped:
        return
    screen.heading(f"dropped: {screen.quantity(len(dropped), 'fact')}")
    rows = [(fact.kind, use_of(fact), "keeps it" if fact.kept_by_compact else "", fact.text) for fact in dropped]
    screen.table(("fact", "later", "Compact", "what"), rows[:limit])
    _show_rest(len(rows), limit)


def use_of(fact: FactOutcome) -> str:
    """Return what happened to a fact later."""
    return "said again" if fact.said_again else "used" if fact.used_later else ""


def _show_repeats(one: CompactionAudit, limit: int) -> None:
    if not one.repeats:
        return
    calls = screen.quantity(len(one.repeats), "call")
    screen.heading(f"looked up again: {calls}, {screen.quantity(one.repeated_tokens, 'token')}")
    rows = [(again.tool, again.tokens, screen.first_line(again.about, chars=100)) for again in one.repeats]
    screen.table(("tool", "tokens", "what"), rows[:limit])
    _show_rest(len(rows), limit)


def _show_rest(count: int, limit: int) -> None:
    if count > limit:
        screen.line(f"… and {count - limit:,} more; --limit shows them", style="dim")


def conclusion(audits: Iterable[LogAudit]) -> list[str]:
    """Return what it comes to, in a few sentences."""
    from compact.cli.audit.findings import count_kind

    all_of = [one for audit in audits for one in audit.compactions]
    total = count_kind("", [fact for one in all_of for fact in one.facts])
    calls = sum(len(one.repeats) for one in all_of)
    tokens = sum(one.repeated_tokens for one in all_of)
    said = sum(bool(fact.said_again) for one in all_of for fact in one.facts)
    compactions = screen.quantity(len(all_of), "compaction")
    sentences = [
        f"{compactions} kept {share_of(total.kept, total.known)} of {screen.quantity(total.known, 'fact')}; "
        f"Compact keeps {share_of(total.kept_by_compact, total.known)} in the same room."
    ]
    if total.used_later:
        used = screen.quantity(total.used_later, "fact")
        sentences.append(
            f"Of the {used} that were used later, {share_of(total.used_kept, total.used_later)} were kept; "
            f"Compact keeps {share_of(total.used_kept_by_compact, total.used_later)}."
        )
    if calls:
        sentences.append(
            f"Afterwards {screen.quantity(calls, 'call')} looked up what had been known: {tokens:,} tokens."
        )
    if said:
        sentences.append(f"People had to repeat {screen.quantity(said, 'constraint')}.")
    return sentences


def share_of(part: int, whole: int) -> str:
    """Return a share in percent; only all is 100 %, and only nothing is 0 %."""
    if not whole:
        return "0%"
    share = round(100 * part / whole)
    return f"{min(share, 99) if 0 < part < whole and share else max(share, int(part > 0))}%"
