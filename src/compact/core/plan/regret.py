"""Regret as data: what a compaction removed and the agent then asked for again, and how that is counted.

`core/audit/regret_finder.py` finds regrets in a log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias

# By the tool `recall`, or by the same call or another read of the same file.
How: TypeAlias = Literal["recall", "reread"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Regret:
    """One removed message that the agent asked for again.

    `tool` made it, and is empty for what no tool said; `action` and `strategy` are those of the record that removed it,
    under the plan `plan_version`. `found_in` is the log entry that brought it back, at the cost of `tokens`.
    """

    message_id: str
    found_in: str
    tool: str
    action: str
    strategy: str
    how: How
    plan_version: int
    tokens: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain data; `from_dict` gives back an equal regret."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Regret:
        """Return the regret that `to_dict` wrote."""
        return cls(**{each.name: data[each.name] for each in fields(cls)})


@dataclass(frozen=True, slots=True)
class Regrets:
    """All regrets of a session when a plan was made, oldest first, and how long its log was then.

    What came since is found by reading the log from there on, so that log and plan are all there is to store.
    """

    found: tuple[Regret, ...] = ()
    log_length: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return plain data; `from_dict` gives back equal regrets."""
        return {"found": [regret.to_dict() for regret in self.found], "log_length": self.log_length}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Regrets:
        """Return the regrets that `to_dict` wrote."""
        return cls(tuple(Regret.from_dict(regret) for regret in data["found"]), data["log_length"])


@dataclass(frozen=True, slots=True, kw_only=True)
class RegretCount:
    """How often the results of one tool, removed by one action of one strategy, were asked for again."""

    tool: str
    action: str
    strategy: str
    recalls: int = 0
    rereads: int = 0
    tokens: int = 0

    @property
    def total(self) -> int:
        """Recalls and second reads."""
        return self.recalls + self.rereads

    @property
    def source(self) -> str:
        """The tool, or a word for what no tool said."""
        return self.tool or "dialogue"


def count_regrets(regrets: Iterable[Regret]) -> tuple[RegretCount, ...]:
    """Return the regrets by tool, action and strategy, the most frequent first."""
    alike: dict[tuple[str, str, str], list[Regret]] = {}
    for regret in regrets:
        alike.setdefault((regret.tool, regret.action, regret.strategy), []).append(regret)
    counts = [
        RegretCount(
            tool=tool,
            action=action,
            strategy=strategy,
            recalls=sum(regret.how == "recall" for regret in group),
            rereads=sum(regret.how == "reread" for regret in group),
            tokens=sum(regret.tokens for regret in group),
        )
        for (tool, action, strategy), group in alike.items()
    ]
    return tuple(sorted(counts, key=lambda count: (-count.total, count.tool, count.action, count.strategy)))
