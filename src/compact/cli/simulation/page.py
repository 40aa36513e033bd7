"""The results of a simulation as one HTML page: no script, nothing loaded, light or dark as the reader's system is."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

from compact.cli.simulation.charts import Bar, Dot, Run, bar_chart, colour, dot_chart, run_chart
from compact.cli.simulation.tables import constraints, price, share
from compact.core.plan.economics import USD
from compact.core.plurals import quantity

if TYPE_CHECKING:
    from compact.measuring.simulation import PolicyResult, SessionResult, Simulation

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_DOTS = "further up keeps more, further left costs less; a line leads to where a number belongs"
_MEASURES = (
    (
        "recall",
        "Paths, ids, numbers, names and quoted phrases that the agent used later and that no later message gave "
        "back: the share that is still in the prompt, letter for letter.",
    ),
    ("linked", "The share that is still there beside the words that it stood beside."),
    ("user text", "The share of what people typed that is still there, word for word."),
    ("lines", "The share of whole lines that the agent repeated later and that are still there."),
    ("constraints", "Sentences of people that Compact takes for constraints, and how many prompts still had them."),
    (
        "compactions",
        "Calls whose prompt does not begin with the prompt before: from the first change on, the provider's "
        "cache is lost.",
    ),
    ("price", "Input only, with the provider's cache, and what a model would have cost that writes summaries."),
)


def simulation_page(simulation: Simulation, *, model: str, recommended: str, reason: str) -> str:
    """Return the page."""
    style = files("compact.cli.simulation").joinpath("page.css").read_text(encoding="utf-8")
    results = simulation.policies
    limits = simulation.limits
    about = (
        f"{quantity(results[0].sessions, 'session')}, {quantity(results[0].calls, 'model call')}, model {model}; "
        f"window {limits.window_tokens:,} tokens, trigger {limits.trigger_tokens:,}, reached by {simulation.reaching:,}"
    )
    body = [
        "<header><h1>What compaction costs, and what it keeps</h1>",
        f'<p class="dim">{escape(about)}</p></header>',
        f'<p class="verdict">{escape(reason)}</p>',
        '<div class="pair">',
        _card(
            "Price and recall",
            "further up keeps more, further left costs less; a line leads to where a number belongs",
            _dots(simulation),
        ),
        _card("Price", "input with cache, and summaries", _costs(simulation)),
        "</div>",
        _longest(simulation),
        _card("All figures", "", _table(simulation, recommended)),
        _card("How it is measured", "", _measures(results)),
    ]
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f"<title>compact simulate</title><style>{style}</style>"
    )
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>{"".join(body)}</body></html>\n'


def _card(title: str, caption: str, content: str) -> str:
    described = f"{escape(caption)}" if caption else ""
    return (
        f'<figure class="card"><h2>{escape(title)}</h2><figcaption>{described}</figcaption>'
        f'<div class="scroll">{content}</div></figure>'
    )


def _dots(simulation: Simulation) -> str:
    money = simulation.currency == USD
    dots = [
        Dot(
            str(number + 1),
            number,
            result.cost,
            result.recall,
            f"{result.policy}: {share(result.recall)} recall, {price(result.cost, simulation.currency)}",
        )
        for number, result in enumerate(simulation.policies)
        if result.recall is not None
    ]
    if not dots:
        why = (
            "agents needed nothing later that was far back" if simulation.reaching else "no session reaches the trigger"
        )
        return f'<p class="dim">There is no recall to compare: {why}.</p>'
    return dot_chart(dots, x_title="price" if money else "price in input tokens", y_title="recall", money=money)


def _costs(simulation: Simulation) -> str:
    bars = [
        Bar(f"{number + 1}  {result.policy}", number, result.cost, price(result.cost, simulation.currency))
        for number, result in enumerate(simulation.policies)
    ]
    return bar_chart(bars, title="price of each policy")


def _longest(simulation: Simulation) -> str:
    """Draw the session with the largest prompts under every policy."""
    first = max(simulation.sessions, key=lambda result: max((call.tokens for call in result.calls), default=0))
    runs = [_run(number, first.session, simulation) for number in range(len(simulation.policies))]
    legend = "".join(f'<li><i style="background:{colour(run.colour)}"></i>{escape(run.label)}</li>' for run in runs)
    limits = simulation.limits
    chart = run_chart(runs, window=limits.window_tokens, trigger=limits.trigger_tokens)
    return _card(
        "Every prompt of the longest session",
        f"{first.session}: tokens sent at each model call",
        f'<div class="wide">{chart}</div><ul class="legend">{legend}</ul>',
    )


def _run(number: int, session: str, simulation: Simulation) -> Run:
    policy = simulation.policies[number].policy
    result: SessionResult = next(one for one in simulation.sessions if (one.session, one.policy) == (session, policy))
    return Run(policy, number, [call.tokens for call in result.calls])


def _table(simulation: Simulation, recommended: str) -> str:
    names = (
        "policy",
        "price",
        "tokens sent",
        "compactions",
        "largest prompt",
        "too large",
        "recall",
        "linked",
        "user text",
        "lines",
        "constraints",
        "ms a call",
    )
    head = "".join(f"<th>{name}</th>" for name in names)
    rows = "".join(_row(result, simulation.currency, recommended) for result in simulation.policies)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _row(result: PolicyResult, currency: str, recommended: str) -> str:
    refused = result.overflows + result.failures
    cells = [
        escape(result.policy),
        price(result.cost, currency),
        f"{result.input_tokens:,}",
        f"{result.compactions:,}",
        f"{result.largest_prompt_tokens:,}",
        f"{refused:,}",
        *map(share, (result.recall, result.linked, result.user_text, result.lines)),
        constraints(result),
        f"{1000 * result.seconds / max(1, result.calls):.1f}",
    ]
    marked = ['<td class="bad">' if number == 5 and refused else "<td>" for number in range(len(cells))]
    chosen = ' class="chosen"' if result.policy == recommended else ""
    return f"<tr{chosen}>{''.join(f'{mark}{cell}</td>' for mark, cell in zip(marked, cells, strict=True))}</tr>"


def _measures(results: Sequence[PolicyResult]) -> str:
    terms = [*((result.policy, result.about) for result in results), *_MEASURES]
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in terms)
    return f"<dl>{rows}</dl>"
