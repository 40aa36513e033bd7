"""What is learned from a provider that refused a prompt as too long: its true limit, and how far our count was off."""

from __future__ import annotations

from dataclasses import dataclass

from compact.core.plan.budget import TokenBudget

# Chosen: of a provider that does not say its limit, the window is taken to be this share of what was refused. A
# compaction goes down to half of that, so that the next prompt has two fifths of the size of the one refused.
ASSUMED_SHARE = 0.8
# Chosen: no model in use has a smaller window; a smaller figure was read wrongly, or is about something else.
_LEAST_LIMIT = 1_024
# Chosen: a prompt as small as this was not refused for its length, unless the provider says so in figures.
_LEAST_ASSUMED = 2_048


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedOverflow:
    """The figures that came with a refusal; None where the provider gave none.

    The limit is for prompt and answer together, or, if `limits_input`, for the prompt alone.
    """

    limit_tokens: int | None = None
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    limits_input: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OverflowLesson:
    """What to do about a refusal: the smaller limit, if one was learned; what the prompt counts, if that is believed.

    `output_reserve` is the room for the answer, if the provider set aside more than we knew of.
    """

    limit_tokens: int | None = None
    reported_tokens: int | None = None
    output_reserve: int = 0
    message: str


def lesson_of(
    report: ReportedOverflow, budget: TokenBudget, *, estimated_tokens: int, used_tokens: int
) -> OverflowLesson:
    """Return what a refusal of a request teaches; `used_tokens` is the most that we thought it could count."""
    known = budget.input_tokens if report.limits_input else budget.max_context_tokens
    parts = [f"the provider refused a prompt of about {used_tokens:,} tokens as too long"]
    limit = report.limit_tokens
    if limit is None:
        limit = _assumed_limit(report, budget, used_tokens)
        parts.append(
            f"it did not say its limit: {limit:,} tokens are assumed in place of {known:,}"
            if limit and limit < known
            else f"it did not say its limit, and {known:,} tokens are still assumed"
        )
    elif limit < _LEAST_LIMIT:
        parts.append(f"a limit of {limit:,} tokens is not believed")
    elif limit < known:
        parts.append(f"the window was taken to be {known:,} tokens, and the provider's limit is {limit:,}")
    learned = limit if limit is not None and _LEAST_LIMIT <= limit < known else None
    reserve = _unknown_reserve(report, budget, learned or known)
    counted = _counted(report, budget)
    if counted is not None and not budget.believes(reported_tokens=counted, estimated_tokens=estimated_tokens):
        parts.append(f"a count of {counted:,} for what we estimate at {estimated_tokens:,} is not believed")
        counted = None
    elif counted is not None and counted > used_tokens:
        parts.append(f"it counts {counted:,}: the estimate is corrected")
    return OverflowLesson(
        limit_tokens=learned, reported_tokens=counted, output_reserve=reserve, message="; ".join(parts)
    )


def _assumed_limit(report: ReportedOverflow, budget: TokenBudget, used_tokens: int) -> int | None:
    """Return a limit that the refused request was surely above, if our count is about right."""
    refused = max(used_tokens, report.prompt_tokens or 0) + (0 if report.limits_input else budget.output_reserve)
    assumed = int(ASSUMED_SHARE * refused)
    return assumed if assumed >= _LEAST_ASSUMED else None


def _counted(report: ReportedOverflow, budget: TokenBudget) -> int | None:
    """Return what the provider counted for the prompt; if it says its limit alone, it was at least that."""
    if report.prompt_tokens or report.limit_tokens is None:
        return report.prompt_tokens
    return max(0, report.limit_tokens - (0 if report.limits_input else budget.output_reserve))


def _unknown_reserve(report: ReportedOverflow, budget: TokenBudget, limit_tokens: int) -> int:
    """Return the room for the answer that the provider counted and we did not know of.

    Room that takes half of the window and more is the request's own mistake: a shorter prompt is no answer to it.
    """
    output = report.output_tokens or 0
    return output if budget.output_reserve < output < limit_tokens // 2 else 0
