"""How far the store has come with a session."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from compact.core.audit.records import SessionHead
from compact.core.plan.plan import CompactionPlan

# A head that no session has: the next call must read the store again.
UNKNOWN_HEAD = SessionHead(last_seq=-1)


@dataclass(frozen=True, slots=True)
class StoreState:
    """What the store has, whether the view must be written again, and plans that the store has not seen.

    `formed_ids` are entries that the caller has in a form that the store does not know, `unseen_ids` those of them that
    something else stands for, `artifact_ids` the artifacts of the newest plan that the store has.
    """

    head: SessionHead = field(default_factory=SessionHead)
    has_branched: bool = False
    formed_ids: frozenset[str] = frozenset()
    unseen_ids: frozenset[str] = frozenset()
    unsaved_plans: tuple[CompactionPlan, ...] = ()
    artifact_ids: frozenset[str] = frozenset()

    @property
    def is_new_branch(self) -> bool:
        """True if the caller is on another view than the store has, or has entries of it in other forms."""
        return self.has_branched or bool(self.formed_ids or self.unseen_ids)

    def with_forms(self, formed: Iterable[str] = (), unseen: Iterable[str] = ()) -> StoreState:
        """Return the same state with more entries whose forms the store does not know."""
        return replace(self, formed_ids=self.formed_ids.union(formed), unseen_ids=self.unseen_ids.union(unseen))
