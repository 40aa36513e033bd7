"""The plans before the one in force, and the lines that the caller was on: prompts of them may come back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, pairwise
from typing import TypeAlias

from compact.core.log.known_list import LeftLine
from compact.core.log.log import Log
from compact.core.messages.legality import check_chat
from compact.core.messages.message import Message
from compact.core.plan.plan import CompactionAction, CompactionPlan
from compact.core.session.prompt import CurrentPrompt

# How many earlier plans are kept. Chosen.
_KEPT_PLANS = 32
# How many earlier plans, and how many lines that were left, are tried for a list that is not known otherwise. Chosen.
_TRIED = 8
# Makes what a plan shows of a line.
PromptOf: TypeAlias = Callable[[CompactionPlan, Sequence[Message]], CurrentPrompt]


@dataclass(frozen=True, slots=True)
class PlannedLine:
    """A line that the caller was on, and the plans that were in force there, the newest first."""

    ids: tuple[str, ...]
    versions: tuple[int, ...]

    def is_in(self, other: PlannedLine) -> bool:
        """Return True if the prompts of this line are those that another one's begin with."""
        return other.ids[: len(self.ids)] == self.ids and set(self.versions) <= set(other.versions)


@dataclass(frozen=True, slots=True)
class PastPlans:
    """The plans before, oldest first; the lines that were left, likewise; and the versions on the line of now.

    Plans and lines are None if they are in the store, and were not needed yet.
    """

    plans: tuple[CompactionPlan, ...] | None = ()
    lines: tuple[PlannedLine, ...] | None = ()
    versions_here: tuple[int, ...] = (0,)

    @classmethod
    def in_store(cls, plan: CompactionPlan, *, has_branches: bool) -> PastPlans:
        """Return what is known when a session was read from its store, but none of this was."""
        has_plans = plan.version > 1
        if has_plans or has_branches:
            return cls(None if has_plans else (), None, (plan.version,))
        return cls((), (), (plan.version, 0))

    @property
    def are_known(self) -> bool:
        """False if the store must be asked."""
        return self.plans is not None and self.lines is not None

    def with_plan(self, before: CompactionPlan, plan: CompactionPlan) -> PastPlans:
        """Return what is past when a plan comes in force after another one."""
        plans = self.plans
        if plans is not None and plan.version != before.version:
            plans = (*plans, before)[-_KEPT_PLANS:]
        versions = dict.fromkeys((plan.version, *self.versions_here))
        return replace(self, plans=plans, versions_here=tuple(versions)[:_TRIED])

    def with_plans(self, plans: Iterable[CompactionPlan]) -> PastPlans:
        """Return the same with these plans."""
        return replace(self, plans=tuple(plans))

    def with_line_left(self, view: Sequence[Message], last_version: int, version: int) -> PastPlans:
        """Return the same for a caller that has left a line, where one plan was the last, and is now under another."""
        lines = self.lines
        if lines is not None:
            versions = tuple(one for one in self.versions_here if one <= last_version)
            lines = _newest([*lines, PlannedLine(tuple(message.id for message in view), versions)])
        return replace(self, lines=lines, versions_here=(version,))

    def with_lines(self, lines: Sequence[PlannedLine] | None, view_ids: Sequence[str]) -> PastPlans:
        """Return the same with the lines of all processes, the oldest first; None if nobody knows them."""
        if lines is None:
            return replace(self, lines=self.lines or ())
        view = tuple(view_ids)
        here = [line for line in lines if view[: len(line.ids)] == line.ids]
        versions = {version for line in here for version in line.versions}.union(self.versions_here)
        left = _newest([line for line in lines if line not in here])
        return replace(self, lines=left, versions_here=tuple(sorted(versions, reverse=True)[:_TRIED]))

    def always_show(self, message_id: str, plan: CompactionPlan) -> bool:
        """Return True if the plan in force and all before it show an entry as it is; False if these are not known."""
        return self.plans is not None and all(is_shown(one, message_id) for one in (plan, *self.plans))

    def plan_on(self, line: LeftLine, plan: CompactionPlan) -> CompactionPlan | None:
        """Return the plan of a line that the caller has left; None if it is not remembered."""
        plans = (plan, *(self.plans or ()), CompactionPlan(plan.session_id))
        return next((one for one in plans if one.version == line.plan_version), None)

    def prompts(self, plan: CompactionPlan, log: Log, prompt_of: PromptOf) -> Iterator[CurrentPrompt] | None:
        """Return the prompts of the plans before the one in force, the newest first; None if these are not known.

        First what they show of the caller's line, then what plans have shown of lines that the caller has left.
        """
        if self.plans is None or self.lines is None:
            return None
        view_ids = {message.id for message in log.view}
        plans = (one for one in reversed(self.plans) if one.records)
        standing = (one for one in plans if all(view_ids.issuperset(record.span) for record in one.records))
        own = (prompt_of(one, log.view) for one in chain(islice(standing, _TRIED), _first_plan(plan, log)))
        left = (LeftLine(line.ids, version) for line in reversed(self.lines) for version in line.versions)
        prompts = (self._prompt_of_left(line, plan, log, prompt_of) for line in left)
        return chain(own, islice((prompt for prompt in prompts if prompt is not None), _TRIED))

    def _prompt_of_left(
        self, line: LeftLine, plan: CompactionPlan, log: Log, prompt_of: PromptOf
    ) -> CurrentPrompt | None:
        """Return what a plan has shown of a line that the caller has left; None if it is known without that."""
        there, view = self.plan_on(line, plan), [log.now(message_id) for message_id in line.ids]
        if there is None or not (there.records or any(message.meta for message in view) or _has_neighbours(view)):
            return None
        prompt = prompt_of(there, view)
        prompt.items = replace(prompt.items, left=line)
        return prompt


def is_shown(plan: CompactionPlan, message_id: str) -> bool:
    """Return True if a plan shows an entry as it is."""
    return plan.get_action(message_id)[0] is CompactionAction.INCLUDE


def _first_plan(plan: CompactionPlan, log: Log) -> Iterator[CompactionPlan]:
    """Yield what was in force before the first compaction, if prompts had to be repaired even then."""
    if plan.records and check_chat(log.view):
        yield CompactionPlan(plan.session_id)


def _newest(lines: Sequence[PlannedLine]) -> tuple[PlannedLine, ...]:
    """Return the newest lines without those that another one has the beginning of, with the same plans."""
    newest: list[PlannedLine] = []
    for line in reversed(lines):
        if not any(line.is_in(other) for other in newest):
            newest = [other for other in newest if not other.is_in(line)] + [line]
    return tuple(newest[:_TRIED][::-1])


def _has_neighbours(view: Sequence[Message]) -> bool:
    """Return True if there are neighbours of one role, which some dialects have in one item."""
    roles = [message.role for message in view if message.role != "tool"]
    return any(before == after for before, after in pairwise(roles))
