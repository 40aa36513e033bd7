"""The partition of a history: pinned, recent dialogue pairs, recent tool groups, and the remainder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from compact.core.messages.groups import Group, group_at
from compact.core.messages.message import Message
from compact.core.plan.line_index import LineIndex


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepRules:
    """What stays verbatim: pinned messages, so many of the newest pairs and tool groups, and results not read yet.

    The defaults are those of the settings `keep_recent_turns` and `keep_tool_io_pairs`.
    """

    recent_turns: int = 6
    tool_io_pairs: int = 4
    unread_results: bool = True
    pinned_roles: frozenset[str] = frozenset({"system", "developer"})
    protected_flag: str = "protected"
    # Attachments of users stay for so many turns; `attached` are the messages whose attachments are in use.
    attachment_turns: int = 3
    attached: frozenset[str] = frozenset()
    # What was missed after an earlier compaction, by the ids of the messages that brought it back.
    missed: frozenset[str] = frozenset()

    def pins(self, message: Message) -> bool:
        """Return True if a message is never touched."""
        marks = message.meta
        # Adapters mark with the usual word, whatever the policy's own is.
        return message.role in self.pinned_roles or bool(marks.get(self.protected_flag) or marks.get("protected"))

    def reductions(self) -> Iterator[KeepRules]:
        """Yield these rules, then ever smaller ones: one pair less, one tool group less, in turn, down to (1, 1).

        What was missed goes first: it may be read once more, what is newest may not have been used yet.
        """
        rules = self
        yield rules
        if rules.missed:
            rules = replace(rules, missed=frozenset())
            yield rules
        while rules.recent_turns > 1 or rules.tool_io_pairs > 1:
            if rules.recent_turns > 1:
                rules = replace(rules, recent_turns=rules.recent_turns - 1)
                yield rules
            if rules.tool_io_pairs > 1:
                rules = replace(rules, tool_io_pairs=rules.tool_io_pairs - 1)
                yield rules


@dataclass(frozen=True, slots=True)
class Layers:
    """Which messages (by place) are in which layer; each is in exactly one."""

    pinned: frozenset[int]
    recent: frozenset[int]
    tool_io: frozenset[int]
    remainder: frozenset[int]
    recent_turns: int
    tool_pairs: int
    # Those of `tool_io` that stay only because they were missed before.
    missed: frozenset[int] = frozenset()
    # Those of `recent` whose attachments are in use.
    attached: frozenset[int] = frozenset()

    @property
    def before_summary(self) -> frozenset[int]:
        """What may stand before the summary: what stays for long, so that a provider's cache keeps serving it."""
        return self.pinned | self.attached

    @property
    def kept(self) -> frozenset[int]:
        """Everything that stays verbatim."""
        return self.pinned | self.recent | self.tool_io


def partition(
    messages: Sequence[Message], groups: Sequence[Group], rules: KeepRules, may_pin: Iterable[int] | None = None
) -> Layers:
    """Sort a history into layers, whole groups at a time; what was missed before is kept beside the newest tool groups.

    A group with one pinned member is pinned whole. The newest user message is always kept: it is what is being asked.
    So is a tool group that ends the history, whose results have not been read yet, and so are attachments in use.
    `may_pin` are the places of all messages that may be pinned, if they are known.
    """
    places = LineIndex(messages).may_pin(rules.pinned_roles) if may_pin is None else may_pin
    pinned_numbers = {group_at(groups, place) for place in places if rules.pins(messages[place])}
    pinned = [groups[number] for number in sorted(pinned_numbers)]
    pinned_starts = {group.indices[0] for group in pinned}

    def newest_first() -> Iterator[Group]:
        free = (number for number in reversed(range(len(groups))) if number not in pinned_numbers)
        return map(groups.__getitem__, free)

    kept_pairs = _newest_pairs(messages, newest_first(), rules.recent_turns)
    tools = (group for group in newest_first() if group.is_tool)
    newest_tool = next((group for group in newest_first() if group.is_tool), None)
    is_unread = newest_tool is not None and newest_tool.indices[-1] == len(messages) - 1
    newest_tools = list(islice(tools, max(rules.tool_io_pairs, int(is_unread and rules.unread_results))))
    older = tools if rules.missed else ()
    missed = [group for group in older if any(messages[i].id in rules.missed for i in group.indices)]
    kept_tools = [*reversed(missed), *reversed(newest_tools)]
    recent = {index for pair in kept_pairs for index in pair}
    newest_ask = next((i for i in range(len(messages) - 1, -1, -1) if messages[i].role == "user"), None)
    if newest_ask is not None and newest_ask not in pinned_starts:
        recent.add(newest_ask)
    in_use = enumerate(messages) if rules.attached else ()  # only where there are attachments
    attached = [i for i, m in in_use if m.id in rules.attached and i not in pinned_starts]
    recent.update(attached)
    layer_pinned = frozenset(i for group in pinned for i in group.indices)
    layer_tools = frozenset(i for group in kept_tools for i in group.indices)
    layer_recent = frozenset(recent)
    remainder = frozenset(range(len(messages))).difference(layer_pinned, layer_tools, layer_recent)
    return Layers(
        pinned=layer_pinned,
        recent=layer_recent,
        tool_io=layer_tools,
        remainder=remainder,
        recent_turns=len(kept_pairs),
        tool_pairs=len(kept_tools),
        attached=frozenset(attached),
        missed=frozenset(i for group in missed for i in group.indices if messages[i].id in rules.missed),
    )


def _newest_pairs(messages: Sequence[Message], newest_first: Iterable[Group], count: int) -> list[list[int]]:
    """Return what was said last in pairs: a user message with the reply to it; a second reply is a pair of its own."""
    pairs: list[list[int]] = []
    is_open = False
    for group in newest_first:
        if group.is_tool:
            continue
        is_user = messages[group.indices[0]].role == "user"
        if is_open and is_user:
            pairs[-1][:0] = group.indices
        elif len(pairs) == count:
            break
        else:
            pairs.append([*group.indices])
        # A reply waits for what it answers.
        is_open = not is_user
    return pairs[::-1]
