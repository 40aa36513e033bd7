"""Chooses one policy by a fixed rule, and says why in a sentence.

Of the policies whose prompts all fit the window, those count that keep about as much as the best one; the cheapest of
them is recommended. If everything fits without compaction, nothing has to be given up, and that is recommended.
"""

from __future__ import annotations

from collections.abc import Sequence

from compact.core.plurals import quantity
from compact.measuring.simulation import PolicyResult, Simulation

NONE = "none"
# Chosen: a difference of fidelity below this is not worth money.
_CLOSE = 0.03


def recommend(simulation: Simulation) -> tuple[str, str]:
    """Return the name of the recommended policy ("" if none can be) and one sentence with the reason."""
    none = simulation.of(NONE)
    if not simulation.reaching:
        largest = max(result.largest_prompt_tokens for result in simulation.policies)
        return NONE, (
            f"No session reaches the trigger of {simulation.limits.trigger_tokens:,} tokens (the largest prompt has "
            f"{largest:,}): compaction has nothing to do here; --window tries a smaller window."
        )
    fitting = [result for result in simulation.policies if result.fits and result.policy != NONE]
    if not fitting:
        return "", (
            f"No policy keeps every prompt within the window of {simulation.limits.window_tokens:,} tokens: try a "
            "larger --window, or settings that compact earlier."
        )
    best = max(result.fidelity or 0.0 for result in fitting)
    close = [result for result in fitting if (result.fidelity or 0.0) >= best - _CLOSE]
    chosen = min(close, key=lambda result: result.cost)
    if none and none.fits:
        return NONE, f"Use none: every prompt fits the window without compaction; {_saving(chosen, none)}."
    return chosen.policy, f"Use {chosen.policy}: {_reason(chosen, fitting, none)}."


def _saving(chosen: PolicyResult, none: PolicyResult) -> str:
    share = chosen.cost / none.cost if none.cost else 1.0
    if share >= 1:
        return f"{chosen.policy} would not be cheaper"
    return f"{chosen.policy} would cost {1 - share:.0%} less, and keep {_kept(chosen)} on average of what is measured"


def _reason(chosen: PolicyResult, fitting: Sequence[PolicyResult], none: PolicyResult | None) -> str:
    others = [result for result in fitting if result is not chosen]
    reason = f"its prompts all fit the window, and it keeps {_kept(chosen)} on average of what is measured"
    if others:
        other = max(others, key=lambda result: result.fidelity or 0.0)
        much = "most" if (chosen.fidelity or 0.0) >= (other.fidelity or 0.0) else "about as much as the best, for less"
        reason = (
            f"of the policies whose prompts all fit the window it keeps {much} "
            f"({_kept(chosen)}{_measured(chosen)}; {other.policy} {_kept(other)})"
        )
    if none and none.cost:
        reason += f", at {chosen.cost / none.cost:.0%} of the price of sending everything"
        refused = quantity(none.overflows, "prompt")
        reason += f", which would not work: {refused} would be larger than the window" if none.overflows else ""
    return reason


def _measured(result: PolicyResult) -> str:
    """Return in what it was measured how much is kept: where nothing came up again later, that is less."""
    shares = {"recall": result.recall, "linked": result.linked, "user text": result.user_text, "lines": result.lines}
    *names, last = [name for name, share in shares.items() if share is not None] or [""]
    if not names:
        return f" in {last}" if last else ""
    return f" on average over {', '.join(names)} and {last}"


def _kept(result: PolicyResult) -> str:
    return "an unknown share" if result.fidelity is None else f"{result.fidelity:.0%}"
