"""The results of a simulation as tables for people, and as data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from compact.cli import screen
from compact.core.audit.cost import dollars
from compact.core.plan.economics import USD

if TYPE_CHECKING:
    from compact.measuring.simulation import PolicyResult, SessionResult, Simulation


def as_data(simulation: Simulation, *, model: str, recommended: str, reason: str) -> dict[str, Any]:
    """Return everything as one object."""
    return {
        "model": model,
        "window_tokens": simulation.limits.window_tokens,
        "trigger_tokens": simulation.limits.trigger_tokens,
        "sessions_reaching_trigger": simulation.reaching,
        "currency": simulation.currency,
        "recommended": recommended,
        "reason": reason,
        "policies": [result.to_dict() for result in simulation.policies],
        "sessions": [_session_data(result) for result in simulation.sessions],
    }


def _session_data(result: SessionResult) -> dict[str, Any]:
    return {
        "session": result.session,
        "policy": result.policy,
        "cost": result.cost,
        "prompt_tokens": [call.tokens for call in result.calls],
        "compactions": sum(call.is_changed for call in result.calls),
    }


def show_tables(simulation: Simulation, *, model: str, reason: str) -> None:
    """Print what was simulated, what each policy costs, what it keeps, and the recommendation."""
    limits, results = simulation.limits, simulation.policies
    sessions, calls = (
        screen.quantity(results[0].sessions, "session"),
        screen.quantity(results[0].calls, "model call"),
    )
    screen.line(f"{sessions}, {calls}, model {model}", style="bold")
    reach = f"{simulation.reaching:,} of them {'reaches' if simulation.reaching == 1 else 'reach'} the trigger"
    screen.line(f"window: {limits.window_tokens:,} tokens, trigger {limits.trigger_tokens:,}; {reach}")
    screen.heading("what it costs")
    columns = (
        "policy",
        "tokens sent",
        "cached",
        "price",
        "compactions",
        "largest prompt",
        "too large",
        "ms a call",
        "slowest ms",
    )
    screen.table(columns, [_cost_row(result, simulation.currency) for result in results])
    screen.heading("what it keeps of what the agent needed later")
    columns = ("policy", "recall", "linked", "user text", "lines", "constraints", "how it works")
    screen.table(columns, [_kept_row(result) for result in results])
    screen.line()
    screen.line(reason, style="bold")


def _cost_row(result: PolicyResult, currency: str) -> tuple[object, ...]:
    return (
        result.policy,
        result.input_tokens,
        screen.percentage(result.cached_tokens, result.input_tokens),
        price(result.cost, currency),
        result.compactions,
        result.largest_prompt_tokens,
        result.overflows + result.failures,
        f"{1000 * result.seconds / max(1, result.calls):.1f}",
        f"{1000 * result.slowest_seconds:.0f}",
    )


def _kept_row(result: PolicyResult) -> tuple[object, ...]:
    shares = (result.recall, result.linked, result.user_text, result.lines)
    return (result.policy, *map(share, shares), constraints(result), result.about)


def share(value: float | None) -> str:
    """Return a share in percent; a dash where there is nothing to keep."""
    return "–" if value is None else f"{value:.1%}"


def constraints(result: PolicyResult) -> str:
    """Return how many constraints were still there, of how many."""
    return f"{result.constraints_kept} of {result.constraints}" if result.constraints else "–"


def price(value: float, currency: str) -> str:
    """Return a sum for people, of less than a cent as `compact show` has it; without known prices, in tokens."""
    return dollars(value) if currency == USD else f"{value:,.0f} tokens"
