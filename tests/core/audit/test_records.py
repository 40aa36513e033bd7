"""What a store has of a session: where it stands after a commit, its views, and its plans by their versions."""

from __future__ import annotations

from typing import Any

import pytest

from compact.core.audit.records import (
    BranchView,
    Commit,
    PlanVersion,
    SessionHead,
    StoredMessage,
    find_version,
    version_before_compaction,
)
from compact.core.errors import CompactError
from compact.core.log.forms import EntryForm
from compact.core.messages.message import Message
from compact.core.plan.plan import EDITED_PAST, CompactionPlan
from compact.stores.memory import InMemoryCompactionStore

LONG, SHORT = Message("tool", "all of it", tool_call_id="c", id="m1"), Message("tool", "", tool_call_id="c", id="m1")
FORM = EntryForm.between(LONG, SHORT, 3)


@pytest.mark.parametrize(
    ("change", "branch"),
    [({}, 4), ({"view_ids": ("m1",)}, 5), ({"forms": {"m1": FORM}}, 5), ({"unseen": {"m1": None}}, 5)],
)
def test_another_view_or_form_is_a_new_branch(change: dict[str, Any], branch: int) -> None:
    commit = Commit(session_id="s", expected=SessionHead(7, 2, 4), **change)
    assert commit.is_branch == (branch == 5)
    assert commit.head_after == SessionHead(7, 2, branch)


def test_a_session_stands_at_the_last_message_and_the_plan_that_were_written() -> None:
    added = tuple(StoredMessage(seq, Message("user", "go on", id=f"m{seq}"), 2) for seq in (8, 9))
    commit = Commit(session_id="s", expected=SessionHead(7, 2, 4), messages=added, plan=CompactionPlan("s", 3))
    assert commit.head_after == SessionHead(9, 3, 4)


def test_a_view_shows_entries_in_its_forms_and_forgets_what_is_seen_again() -> None:
    view = BranchView(2, ("m1", "m2"), unseen={"m3": FORM, "m4": FORM})
    view = view.with_forms({"m1": FORM}, {"m3": None, "m5": FORM})
    assert (view.forms, view.unseen) == ({"m1": FORM}, {"m4": FORM, "m5": FORM})
    shown, other = view.shown(StoredMessage(1, LONG, 9)), StoredMessage(2, Message("user", "go on", id="m2"), 2)
    assert (shown.message.text, shown.tokens) == ("", 3)
    assert view.shown(other) is other


def versions(*plans: CompactionPlan) -> list[PlanVersion]:
    return [PlanVersion(plan, 0.0) for plan in plans]


def test_a_version_that_is_not_there_is_an_error_that_says_which_are() -> None:
    plans = versions(CompactionPlan("s", 1), CompactionPlan("s", 2))
    assert find_version(plans, 2, "s") is plans[1]
    with pytest.raises(CompactError, match="no plan version 3") as raised:
        find_version(plans, 3, "s")
    assert raised.value.hint == "its versions are 0 to 2"
    with pytest.raises(CompactError) as raised:
        find_version(plans[:1], 3, "s")
    assert raised.value.hint == "its versions are 0 to 1"
    with pytest.raises(CompactError) as raised:
        find_version([], 1, "s")
    assert raised.value.hint == "it was never compacted: there is only version 0"


def test_the_version_before_a_compaction_is_that_of_the_one_in_force() -> None:
    first, second = CompactionPlan("s", 1), CompactionPlan("s", 2)
    restored = CompactionPlan("s", 3, origin=1)
    assert version_before_compaction(CompactionPlan("s"), []) is None
    assert version_before_compaction(second, versions(first, second)) == 1
    assert version_before_compaction(restored, versions(first, second, restored)) == 0
    assert version_before_compaction(CompactionPlan("s", 3, origin=0), versions(first, second)) is None


def test_an_edited_past_leaves_the_compaction_before_it_in_force() -> None:
    made = CompactionPlan("s", 2)
    edited = [CompactionPlan("s", version, reason=EDITED_PAST) for version in (3, 4)]
    assert version_before_compaction(edited[1], versions(CompactionPlan("s", 1), made, *edited)) == 1
    restored = CompactionPlan("s", 5, origin=3)
    assert version_before_compaction(restored, versions(made, *edited, restored)) == 1
    first = CompactionPlan("s", 1, reason=EDITED_PAST)
    assert version_before_compaction(first, versions(first)) is None, "there was no compaction before it"


def test_a_plan_that_is_put_in_force_has_the_next_version() -> None:
    store = InMemoryCompactionStore()
    assert store.get_current_plan("s") == (CompactionPlan("s"), 0)
    for version in (0, 1, 2):
        assert store.commit_plan("s", CompactionPlan("s", reason=f"after {version}"), version) == version + 1
    plan, version = store.get_current_plan("s")
    assert (plan.reason, plan.version, version) == ("after 2", 3, 3)
