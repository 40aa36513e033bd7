"""`compact simulate`: what compaction would have cost and kept in recorded sessions, under several policies."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from compact.cli import screen
from compact.cli.options import AsJson, ConfigFile, RecordedModel, Window
from compact.cli.settings import for_recorded_model, in_memory, load_agent_config
from compact.cli.simulation.policy_names import DEFAULT_POLICIES, find_policy
from compact.cli.simulation.recorded import read_recordings, read_sessions
from compact.core.errors import CompactError

if TYPE_CHECKING:
    from compact.config import CompactConfig
    from compact.core.plan.economics import Prices
    from compact.measuring.histories import SessionHistory
    from compact.measuring.policies import Policy
    from compact.measuring.simulation import Progress, Simulation

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="PATH...",
        help="Transcripts as `compact inspect` reads them, or folders of them; - reads standard input.",
    ),
]
Policies = Annotated[
    list[str] | None,
    typer.Option(
        "--policy",
        metavar="NAME",
        help="A policy; may be repeated. none: sends everything. window: the newest messages that fit. clear: clears "
        "old tool results at every call; clear-batched: at the trigger only. langchain, strands: the defaults of these "
        "frameworks, by rule. compact: this library; compact:trigger_pct=0.7,target_pct=0.3 with other settings, "
        f"compact:FILE with those of a file. By default {', '.join(DEFAULT_POLICIES)}.",
    ),
]
Longest = Annotated[
    int | None, typer.Option("--longest", metavar="N", min=1, help="Only the N longest sessions; by default all.")
]
Html = Annotated[
    Path | None,
    typer.Option("--html", metavar="PATH", help="Write a page with charts; it is one file and loads nothing."),
]


def simulate(
    files: Files,
    policy: Policies = None,
    longest: Longest = None,
    html: Html = None,
    model: RecordedModel = None,
    window: Window = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Compare policies on recorded sessions.

    Every model call is made again, without a model: the same history, the prompt that each policy would have sent. The
    price assumes the provider's cache. What is kept is measured by what the agent really said later. Nothing is written
    but --html, and no model is called: where a policy would have one write a summary, code writes it.
    """
    settings = load_agent_config(config, model=model, window=window)
    names = list(dict.fromkeys(policy or DEFAULT_POLICIES))
    for name in names:
        find_policy(name, settings)  # a wrong one is told before anything is read
    recordings = read_recordings(files)
    if not recordings.model and "model" not in settings.model_fields_set:
        screen.notice(f"for {settings.model}: no file says which model it was recorded with; --model names another")
    settings = for_recorded_model(settings, recordings.model)
    policies = [find_policy(name, settings) for name in names]
    sessions = read_sessions(recordings, settings)
    if longest is not None:
        sessions = sorted(sessions, key=lambda session: -session.largest_tokens)[:longest]
    with _progress(len(sessions) * (len(policies) + 1)) as progress:
        simulation = _simulate(sessions, policies, settings, progress)
    _show(simulation, settings, html, as_json=as_json)


def _simulate(
    sessions: Sequence[SessionHistory], policies: Sequence[Policy], settings: CompactConfig, progress: Progress
) -> Simulation:
    from compact.assembly.budget import build_budget
    from compact.assembly.prices import build_pricer
    from compact.core.plan.economics import INPUT_TOKENS, USD
    from compact.measuring.policies import PolicyLimits
    from compact.measuring.simulation import simulate as replay
    from compact.pricing import model_prices

    budget = build_budget(in_memory(settings))
    pricer = build_pricer(settings)
    # Waits for the list of prices, which `at_hand` does not.
    model_prices(settings.model)

    def price_of(input_tokens: int) -> Prices | None:
        return pricer.at_hand.of(input_tokens)

    return replay(
        sessions,
        policies,
        PolicyLimits(budget.input_tokens, budget.trigger_tokens),
        price_of=price_of,
        currency=USD if price_of(0) else INPUT_TOKENS,
        progress=progress,
    )


def _show(simulation: Simulation, settings: CompactConfig, html: Path | None, *, as_json: bool) -> None:
    from compact.cli.simulation.page import simulation_page
    from compact.cli.simulation.tables import as_data, show_tables
    from compact.measuring.recommendation import recommend

    recommended, reason = recommend(simulation)
    if html:
        page = simulation_page(simulation, model=settings.model, recommended=recommended, reason=reason)
        try:
            html.write_text(page, encoding="utf-8")
        except OSError as error:
            raise CompactError(f"cannot write {html}: {error.strerror}", hint="check the path of --html") from None
    if as_json:
        screen.write_json(as_data(simulation, model=settings.model, recommended=recommended, reason=reason))
    else:
        show_tables(simulation, model=settings.model, reason=reason)
    if html:
        screen.notice(f"wrote {html}")


@contextmanager
def _progress(steps: int) -> Generator[Progress]:
    """Show a bar on stderr that names what is done; nothing in a pipe."""
    with screen.progress("replaying", steps) as advance:
        begun = False

        def report(session: str, policy: str) -> None:
            nonlocal begun
            advance(int(begun), f"{screen.truncate(screen.printable(session), 30)}: {policy}")
            begun = True

        yield report
