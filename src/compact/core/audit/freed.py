"""What each action freed: what a compaction did to each message, so that its parts add up to the whole.

A message is told of under the action that it has now. One that was cleared and is summarised in the same compaction was
summarised; one that a summary already stood for is not told of again when the summary is written anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from compact.core.plan.plan import (
    ClearRecord,
    CompactionAction,
    CompactionPlan,
    ExternalizationRecord,
    Record,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentChange:
    """What one strategy did in one compaction, by one action.

    `changed_again` of the messages were not in the prompt as they came before either. `tokens_before` is what the
    messages took (for a summary, with the one before it), `tokens_after` what stands for them. `tokens_freed` is the
    share of it in what the whole prompt got smaller by.
    """

    action: CompactionAction
    strategy: str
    message_ids: tuple[str, ...]
    changed_again: int
    tokens_before: int
    tokens_after: int
    tokens_freed: int = 0
    artifact_ids: tuple[str, ...] = ()


@dataclass(slots=True)
class _Group:
    message_ids: list[str] = field(default_factory=list[str])
    artifact_ids: list[str] = field(default_factory=list[str])
    changed_again: int = 0
    tokens_before: int = 0
    tokens_after: int = 0


def content_changes(
    message_ids: Iterable[str],
    before: CompactionPlan,
    after: CompactionPlan,
    *,
    message_tokens: Callable[[str], int],
    tokens_freed: int,
) -> tuple[ContentChange, ...]:
    """Return what changed from one plan to the next in a history.

    `message_ids` are those of it, in order, for which a summary did not stand before or does not now. `tokens_freed` is
    how much smaller the whole prompt got; the shares of the changes add up to it.
    """
    groups: dict[tuple[CompactionAction, str], _Group] = {}
    for message_id in message_ids:
        was, now = before.get_action(message_id)[1], after.get_action(message_id)[1]
        if now is None or was is now:
            continue
        group = groups.setdefault((now.action, now.strategy), _Group())
        group.message_ids.append(message_id)
        group.changed_again += was is not None
        group.tokens_before += message_tokens(message_id) if was is None else _stub_tokens(was)
        group.tokens_after += _stub_tokens(now)
        if isinstance(now, ExternalizationRecord):
            group.artifact_ids += (one.artifact_id for one in now.each())
    summary = after.summary
    if summary and summary is not before.summary:
        group = groups.setdefault((summary.action, summary.strategy), _Group())
        group.tokens_before += before.summary.tokens_after if before.summary else 0
        group.tokens_after += summary.tokens_after
    changes = [
        ContentChange(
            action=action,
            strategy=strategy,
            message_ids=tuple(group.message_ids),
            changed_again=group.changed_again,
            tokens_before=group.tokens_before,
            tokens_after=group.tokens_after,
            artifact_ids=tuple(group.artifact_ids),
        )
        for (action, strategy), group in groups.items()
    ]
    shares = shares_of([change.tokens_before - change.tokens_after for change in changes], tokens_freed)
    return tuple(replace(change, tokens_freed=share) for change, share in zip(changes, shares, strict=True))


def shares_of(freed: Sequence[int], total: int) -> list[int]:
    """Return what each of several changes freed, none below nothing, so that the sum is `total`.

    A change may make its part of the prompt longer (a summary that grew), and repairs of the whole add a little to it:
    that is taken off the changes that freed most.
    """
    shares = [max(0, tokens) for tokens in freed]
    largest_first = sorted(range(len(shares)), key=lambda place: -shares[place])
    too_much = sum(shares) - max(0, total)
    for place in largest_first:
        taken = min(shares[place], too_much)  # below nothing: the first one gets what is missing
        shares[place] -= taken
        too_much -= taken
    return shares


def _stub_tokens(record: Record) -> int:
    """Return what stands in the place of a message; the summary stands once for all of its messages."""
    return record.tokens_after if isinstance(record, ClearRecord | ExternalizationRecord) else 0
