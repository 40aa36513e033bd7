"""How sure a share is: 95 % intervals that are right for small numbers and for shares near 0 and 1."""

from __future__ import annotations

import math

_Z = 1.959964  # 97.5 % of a normal distribution lie below


def wilson(hits: int, total: int) -> tuple[float, float]:
    """Return the interval of a share (Wilson, 1927)."""
    if not total:
        return 0.0, 1.0
    share, spread = hits / total, _Z * _Z / total
    centre = share + spread / 2
    half = _Z * math.sqrt(share * (1 - share) / total + spread / (4 * total))
    return max(0.0, (centre - half) / (1 + spread)), min(1.0, (centre + half) / (1 + spread))


def difference(hits: int, other_hits: int, total: int) -> tuple[float, float, float]:
    """Return a share less another one of as many tasks, and its interval (Newcombe, 1998, by squares of Wilson's).

    It takes the two for independent. They are of the same tasks, so the true interval is narrower.
    """
    (low, high), (other_low, other_high) = wilson(hits, total), wilson(other_hits, total)
    share, other = hits / total, other_hits / total
    below = math.hypot(share - low, other_high - other)
    above = math.hypot(high - share, other - other_low)
    return share - other, max(-1.0, share - other - below), min(1.0, share - other + above)
