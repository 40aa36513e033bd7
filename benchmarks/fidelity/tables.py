"""Prints the figures: tables for people, plain text in a pipe."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from compact.measuring.scores import COLUMNS, mean
from fidelity.chained import Round
from fidelity.natural import NaturalOutcome
from fidelity.product import Failure
from fidelity.running import Outcome

Means = Mapping[str, Mapping[str, float | None]]
GATES = ("legal", "budget", "invented", "deterministic", "idempotent", "survives", "one summary", "constraint", "task")
_MISSED_SHOWN = 12
_FAILURES_SHOWN = 3
_FRACTIONS = ("recall", "linked")


def print_scores(figures: Mapping[float, Mapping[str, Means]]) -> None:
    """One table a budget: the mean of the domains, then each domain."""
    for budget, systems in figures.items():
        table = new_table(f"{budget:g} % of the prefix", "system", "domain", *map(_title, COLUMNS))
        for system, means in systems.items():
            for number, (domain, scores) in enumerate(means.items()):
                name = system if number == 0 else ""
                style = "bold" if number == 0 else "dim"
                table.add_row(name, domain, *(cell(scores[column]) for column in COLUMNS), style=style)
        show(table)


def print_worst(outcomes: Sequence[Outcome], most: int) -> None:
    """The transcripts with the lowest recall, and what was missed: who said it last, how many tokens before the cut."""
    console = Console()
    ranked = sorted((o for o in outcomes if o.scores.recall is not None), key=lambda o: o.scores.recall or 0)
    for outcome in ranked[:most]:
        console.print(f"\n{escape(outcome.id)}  recall {cell(outcome.scores.recall, 100)}", soft_wrap=True)
        for need in outcome.missed[:_MISSED_SHOWN]:
            where = f"{need.last_role}, {need.last_distance:,} back"
            console.print(f"  {escape(need.string)}  ({where})", soft_wrap=True, highlight=False)
    roles = Counter(need.last_role for outcome in outcomes for need in outcome.missed)
    said = ", ".join(f"{role} {number}" for role, number in roles.most_common())
    console.print(f"\nmissed, by who said it last: {said}", highlight=False)


def print_natural(figures: Means, outcomes: Sequence[NaturalOutcome]) -> None:
    """One line a system, and if wanted one a compaction."""
    table = new_table("at the size of the real summary", "system", "", *map(_title, COLUMNS))
    for system, scores in figures.items():
        table.add_row(system, "", *(cell(scores[column]) for column in COLUMNS))
    for outcome in sorted(outcomes, key=lambda outcome: outcome.id):
        values = (cell(getattr(outcome.scores, column), 100) for column in COLUMNS)
        table.add_row(outcome.system, f"{outcome.id} ({outcome.target_tokens:,})", *values, style="dim")
    show(table)


def print_chained(chains: Sequence[Sequence[Round]]) -> list[dict[str, float | None]]:
    """One line a round, over all chains; gives the same figures as data."""
    titles = ("tokens before", "after", "summary", "recall", "linked", "task kept", "constraints lost")
    table = new_table("rounds in one session", "round", "chains", *titles)
    figures: list[dict[str, float | None]] = []
    for number, rounds in enumerate(zip(*chains, strict=True), 1):
        scores = [one.scores for one in rounds if one.scores]
        figures.append(
            {
                "round": number,
                "chains": len(rounds),
                "tokens_before": mean([one.tokens_before for one in rounds], unit=1),
                "tokens_after": mean([one.tokens_after for one in rounds], unit=1),
                "summary_tokens": mean([one.summary_tokens for one in rounds], unit=1),
                "recall": mean([score.recall for score in scores]),
                "linked": mean([score.linked for score in scores]),
                "task_kept": sum(one.has_task for one in rounds),
                "constraints_lost": sum(one.constraints_lost for one in rounds),
            }
        )
        table.add_row(*(cell(value, digits=int(name in ("recall", "linked"))) for name, value in figures[-1].items()))
    show(table)
    return figures


def print_failures(failures: Sequence[Failure]) -> None:
    """How often each gate failed, with a few examples."""
    console = Console()
    by_gate: defaultdict[str, list[Failure]] = defaultdict(list)
    for failure in failures:
        by_gate[failure.gate].append(failure)
    counts = ", ".join(f"{gate} {len(by_gate[gate])}" for gate in GATES)
    console.print(f"gates failed: {counts}", soft_wrap=True, highlight=False)
    for gate in GATES:
        for failure in by_gate[gate][:_FAILURES_SHOWN]:
            line = escape(f"  {gate}: {failure.transcript}: {failure.detail}")
            console.print(line, soft_wrap=True, highlight=False)


def new_table(title: str, *columns: str) -> Table:
    """A table whose figures stand to the right."""
    table = Table(title=title, title_justify="left")
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number < 2 else "right")
    return table


def show(table: Table) -> None:
    """Print a table."""
    console = Console()
    if console.is_terminal:
        console.print(table)
    else:
        print(plain(table))


def plain(table: Table) -> str:
    """The same table as aligned text."""
    columns = [[str(column.header), *map(str, column.cells)] for column in table.columns]
    widths = [max(map(len, column)) for column in columns]
    rows = zip(*columns, strict=True)
    lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join(["", str(table.title), *lines])


def cell(value: float | None, unit: float = 1, digits: int = 1) -> str:
    """A figure, or a dash where there is nothing to measure."""
    return "–" if value is None else f"{unit * value:,.{int(digits)}f}"


def _title(column: str) -> str:
    return column.replace("_", " ")
