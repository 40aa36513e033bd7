"""Watch for regrets: what compactions removed and the agent asks for again."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

from compact.core.audit.regret_finder import RegretFinder, read_regrets
from compact.core.log.log import Log, Match
from compact.core.plan.plan import CompactionPlan
from compact.core.plan.regret import Regret
from compact.core.session.entry_tokens import EntryTokens


class RegretWatch:
    """Reads the log of a session under its plan, each entry once, as far as anybody asks.

    `new` are the regrets that the newest list brought.
    """

    def __init__(self, log: Log, tokens: EntryTokens) -> None:
        self.new: tuple[Regret, ...] = ()
        self._log, self._tokens = log, tokens
        # What reads the log under the plan in force, made when it is needed.
        self._finder: RegretFinder | None = None
        # What has read it under the plan before: it need not be read again, unless entries have other forms now.
        self._earlier: RegretFinder | None = None

    def found(self, plan: CompactionPlan) -> tuple[Regret, ...]:
        """Return all regrets under the plan in force, oldest first."""
        return tuple(self._read(plan).found)

    def missed_ids(self, plan: CompactionPlan) -> Iterator[str]:
        """Yield the messages that brought back what was missed, newest first."""
        return self._read(plan).missed_ids()

    def look(self, plan: CompactionPlan, match: Match) -> None:
        """Look for regrets among the entries that a match has just brought; a plan that removes nothing has none."""
        self.new = ()
        if match.branched or match.rejoined or not plan.records:
            self._finder = self._earlier = None
        if not plan.records:
            return
        finder = self._finder or self._taken_over(plan, len(match.new))
        if finder is None:
            finder = self._read(plan)
        else:
            self._finder = finder
            for message in match.new:
                finder.add(message, tokens=self._tokens.of(message.id))
        new_ids = {message.id for message in match.new}
        newest = takewhile(lambda regret: regret.found_in in new_ids, reversed(finder.found))
        self.new = tuple(reversed(list(newest)))

    def leave_plan(self, plan: CompactionPlan) -> None:
        """Note that a plan is no longer in force; under one that removes nothing, nothing was read."""
        self._earlier, self._finder = self._finder if plan.records else None, None

    def _read(self, plan: CompactionPlan) -> RegretFinder:
        if self._finder is None:
            self._finder = self._taken_over(plan, 0) or read_regrets(
                plan, self._log.entries, self._log.view, self._tokens.of
            )
        return self._finder

    def _taken_over(self, plan: CompactionPlan, new: int) -> RegretFinder | None:
        """Return the finder of the plan before, for this plan, if it has read all of the line but what is new."""
        finder, self._earlier = self._earlier, None
        view = self._log.view
        if finder is None or not plan.records or not finder.has_read(view[: len(view) - new]):
            return None
        finder.take_plan(plan)
        return finder
