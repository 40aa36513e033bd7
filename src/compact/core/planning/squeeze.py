"""Cut what is too large: older messages before the newest, results before what was said; and fill up what is left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from compact.core.facts.constraints import ConstraintFinder
from compact.core.messages.message import Message
from compact.core.plan.layers import KeepRules
from compact.core.plan.parts import PromptPart, part_of
from compact.core.plan.plan import ClearRecord, CompactionPlan, ExternalizationRecord, Record, SummarizationRecord
from compact.core.plan.renderer import summary_message
from compact.core.plan.strategy import CLEAR, MIN_SUMMARY_TOKENS, CompactionProposal, PlanningContext
from compact.core.plan.stubs import ATTACHMENTS, SHORTEN, render_cleared, render_externalized
from compact.core.planning.attachment_moves import pointers_of, shows_attachments, taking, with_attachments_that_fit
from compact.core.planning.shortening import SMALLEST_TOKENS, Candidate, Shortener
from compact.core.summary.fitting import cut_to
from compact.core.summary.summary import StructuredSummary

# Whether a message, which takes so many tokens, may be cut.
MayCut: TypeAlias = Callable[[Message, int], bool]
# Chosen: room below the target that is worth filling, and how much of what was cleared is read to fill it.
_MIN_SPARE_TOKENS = 100
_MIN_SPARE_SHARE = 0.05
_REFILL_CHOICE = 8
# Chosen: a message above this share of the ceiling is cut before the others.
_LARGE_SHARE = 0.25
# Chosen: what is left of an older message before the newest is cut: its stub, and a few words.
_NEARLY_NOTHING_TOKENS = 16


@dataclass(frozen=True, slots=True)
class Squeezer:
    """Makes a planned prompt fit its ceiling; where a message has to be cut, what users asked to hold stays."""

    constraints: ConstraintFinder

    def squeeze(self, context: PlanningContext) -> PlanningContext:
        """Cut what is too large, older messages before the newest; results first, then the summary, then the rest.

        A message that takes more than a large share of the prompt is cut down to that share before any other, unless
        cutting the older ones is enough.
        """
        large, newest = int(_LARGE_SHARE * context.goal.ceiling_tokens), newest_places(context)

        def is_older(message: Message, tokens: int) -> bool:
            return context.places[message.id] not in newest

        def is_bulky(message: Message, tokens: int) -> bool:
            is_large = tokens > large and (message.role == "user" or bool(message.tool_calls))
            return message.role == "tool" or (is_large and not shows_attachments(start, message))

        def is_older_bulky(message: Message, tokens: int) -> bool:
            return is_older(message, tokens) and is_bulky(message, tokens)

        start = context = _with_bare_stubs(context)
        for older in self._older_cut(self._shorten(context, is_older_bulky), is_older, large):
            if fits(older):
                return older
        context = self._shorten(self._cut_large(context, is_bulky, large), is_older_bulky)
        context = squeeze_summary(context, context.goal.ceiling_tokens // 3)
        context = with_attachments_that_fit(context)
        context = self._shorten(context, is_older)
        shorter = self._shorten(context, _but_of_users(is_older), least_tokens=_NEARLY_NOTHING_TOKENS)
        if fits(shorter):
            return shorter
        for may_cut in (is_bulky, _anything):
            context = self._shorten(context, may_cut)
        # Where messages can be left out instead, the summary goes on holding what users asked to hold.
        summary = context.plan.summary if context.goal.may_drop and not fits(context) else None
        return squeeze_summary(context, context.constraint_tokens(summary) if summary else 0)

    def _older_cut(self, context: PlanningContext, is_older: MayCut, large_tokens: int) -> Iterator[PlanningContext]:
        """Yield what the prompt is with older messages cut; more of it is cut if that is not enough.

        The newest call is cut down to a large share before what was said, since its answer is there. So is the newest
        result before what users said, or if cutting the agent's words is not enough: it can be had again.
        """
        context = self._cut_large(context, _is_call, large_tokens)
        yield self._shorten(context, _but_of_users(is_older))
        yield self._shorten(self._cut_large(context, _is_result, large_tokens), is_older)

    def trim_dialogue(self, context: PlanningContext, rules: KeepRules) -> PlanningContext:
        """Cut what was said, and the arguments of calls, until the dialogue is as small as its cap wants it.

        What no summary could take in is left for this: the words and arguments of calls whose results stay.
        """
        tokens = sum(
            context.weight(index)
            for index, message in enumerate(context.messages)
            if part_of(message, context.plan.get_action(message.id)[1], rules) is PromptPart.DIALOGUE
        )
        old = {context.messages[index].id for index in context.layers.remainder}
        return self._cut(
            context, tokens - context.goal.part_tokens, lambda message, _: message.id in old and message.role != "tool"
        )

    def refill(self, context: PlanningContext, before: CompactionPlan) -> PlanningContext:
        """Keep more of what was cleared now, the newest first, where more was cleared than the target demands."""
        spare = min(context.goal.target_tokens, context.goal.ceiling_tokens) - context.total_tokens()
        if spare < max(_MIN_SPARE_TOKENS, _MIN_SPARE_SHARE * context.goal.target_tokens):
            return context
        cleared = _newly_cleared(context, before, _REFILL_CHOICE * spare)
        if not cleared:
            return context
        shown = (context.messages[index] for index in context.shown)
        around = [message for message in shown if message.id in cleared or _stands(context.plan, message)]
        candidates = [
            Candidate(message, context.tokens[context.places[message.id]], cleared[message.id].tokens_after)
            for message in around
            if message.id in cleared
        ]
        shortener = Shortener(around, context.count_message, self.constraints)
        longer = shortener.lengthen(candidates, cleared, spare)
        return taking(context, [CompactionProposal(record) for record in longer])

    def _cut_large(self, context: PlanningContext, may_cut: MayCut, large_tokens: int) -> PlanningContext:
        """Cut what takes more than so many tokens, but no further than down to these."""
        above = {
            context.messages[index].id: weight - large_tokens
            for index in context.shown
            if (weight := context.weight(index)) > large_tokens
            and may_cut(context.messages[index], context.tokens[index])
        }
        excess = min(context.total_tokens() - context.goal.ceiling_tokens, sum(above.values()))
        return self._cut(context, excess, lambda message, _: message.id in above)

    def _shorten(
        self, context: PlanningContext, may_cut: MayCut, least_tokens: int = SMALLEST_TOKENS
    ) -> PlanningContext:
        """Cut messages until the prompt fits its ceiling, each down to so many tokens."""
        return self._cut(context, context.total_tokens() - context.goal.ceiling_tokens, may_cut, least_tokens)

    def _cut(
        self,
        context: PlanningContext,
        excess: int,
        may_cut: MayCut,
        least_tokens: int = SMALLEST_TOKENS,
    ) -> PlanningContext:
        """Cut messages that are too large; pinned ones and what a strategy already deals with are left alone."""
        if excess <= 0:
            return context
        standing = [index for index in context.shown if _stands(context.plan, context.messages[index])]
        candidates = [
            candidate_at(context, index)
            for index in standing
            if index not in context.layers.pinned and may_cut(context.messages[index], context.tokens[index])
        ]
        shortener = Shortener([context.messages[index] for index in standing], context.count_message, self.constraints)
        records = (beside_pointers(context, record) for record in shortener.shorten(candidates, excess, least_tokens))
        return taking(context, [CompactionProposal(record) for record in records])


def newest_places(context: PlanningContext) -> set[int]:
    """Return what is cut last: the newest message, with its call and the other results of that, and what is asked."""
    newest = {*last_group(context)}
    asked = next((i for i in range(len(context.messages) - 1, -1, -1) if context.messages[i].role == "user"), None)
    return newest if asked is None else newest | {asked}


def last_group(context: PlanningContext) -> tuple[int, ...]:
    """Return the places of the newest message, its call and the other results of that."""
    last = len(context.messages) - 1
    return next((group.indices for group in reversed(context.groups) if last in group.indices), ())


def candidate_at(context: PlanningContext, index: int) -> Candidate:
    """Return a message that may be cut; of one with attachments only the text, since pointers stay for the others."""
    message, weight = context.messages[index], context.weight(index)
    record = pointers_of(context, message)
    if record is None:
        return Candidate(message, context.tokens[index], weight)
    text = replace(message, content=message.text)
    pointers = context.count_message(render_externalized(replace(message, content=""), replace(record, kept=None)))
    return Candidate(text, context.count_message(text), max(0, weight - pointers))


def beside_pointers(context: PlanningContext, record: ClearRecord) -> ClearRecord | ExternalizationRecord:
    """Return the record of a message that was cut; one with attachments has pointers beside what stays of its text."""
    message = context.messages[context.places[record.span.first]]
    standing = pointers_of(context, message)
    if standing is None:
        return record
    cut = replace(standing, kept=record.kept)
    return replace(cut, tokens_after=context.count_message(render_externalized(message, cut)))


def _with_bare_stubs(context: PlanningContext) -> PlanningContext:
    """Keep nothing of results that were cleared or moved, the oldest first, until the prompt fits its ceiling."""
    excess = context.total_tokens() - context.goal.ceiling_tokens
    bare: list[CompactionProposal] = []
    for index in context.shown:
        if excess <= 0:
            break
        record = context.plan.get_action(context.messages[index].id)[1]
        stub = _bare(context, record)
        if record and stub:
            excess -= record.tokens_after - stub.tokens_after
            bare.append(CompactionProposal(stub))
    return taking(context, bare)


def _bare(context: PlanningContext, record: Record | None) -> Record | None:
    """Return the record of a result that keeps nothing of it; None if it keeps nothing already.

    Its stub says what the result took, so it is counted with that, not with what stands for the result now.
    """
    if isinstance(record, ClearRecord) and record.strategy == CLEAR and record.kept:
        message, bare = context.messages[context.places[record.span.first]], replace(record, kept=())
        return replace(bare, tokens_after=context.count_message(render_cleared(message, bare)))
    if isinstance(record, ExternalizationRecord) and record.preview:
        message, moved = context.messages[context.places[record.span.first]], replace(record, preview="")
        return replace(moved, tokens_after=context.count_message(render_externalized(message, moved)))
    return None


def squeeze_summary(context: PlanningContext, least_tokens: int) -> PlanningContext:
    """Let the summary give way until the prompt fits, down to a size; some lines of it are always left."""
    summary, excess = context.plan.summary, context.total_tokens() - context.goal.ceiling_tokens
    if excess <= 0 or summary is None:
        return context
    room = min(summary.tokens_after, max(least_tokens, MIN_SUMMARY_TOKENS, summary.tokens_after - excess))
    if summary.summary is None:
        smaller = replace(summary, max_tokens=room, tokens_after=room)
    else:
        smaller = _shorter_summary(context, summary, summary.summary, room)
    return replace(context, plan=context.plan.adding(smaller))


def _shorter_summary(
    context: PlanningContext, record: SummarizationRecord, written: StructuredSummary, max_tokens: int
) -> SummarizationRecord:
    """Return a summary that is written already, cut to the room there is; the next version of it if it is shorter."""

    def tokens(summary: StructuredSummary) -> int:
        return context.count_message(summary_message(replace(record, summary=summary, version=record.version + 1)))

    cut = cut_to(written, lambda candidate: tokens(candidate) <= max_tokens)
    if tokens(cut) >= record.tokens_after:
        return record
    version = record.version + 1
    return replace(record, summary=cut, version=version, max_tokens=max_tokens, tokens_after=tokens(cut))


def _newly_cleared(context: PlanningContext, before: CompactionPlan, max_tokens: int) -> dict[str, ClearRecord]:
    """Return what this compaction has cleared, the newest first, up to so many tokens in full."""
    standing = {id(record) for record in before.records}
    found: dict[str, ClearRecord] = {}
    for index in reversed(context.shown):
        record = context.plan.get_action(context.messages[index].id)[1]
        if isinstance(record, ClearRecord) and record.strategy == CLEAR and id(record) not in standing:
            found[record.span.first] = record
            max_tokens -= context.tokens[index]
            if max_tokens <= 0:
                break
    return found


def _stands(plan: CompactionPlan, message: Message) -> bool:
    """Return True if a message stands in the prompt in its own words, whole or cut."""
    record = plan.get_action(message.id)[1]
    return record is None or record.strategy in (SHORTEN, ATTACHMENTS)


def fits(context: PlanningContext) -> bool:
    """Return True if a prompt is within its ceiling."""
    return context.total_tokens() <= context.goal.ceiling_tokens


def _but_of_users(may_cut: MayCut) -> MayCut:
    return lambda message, tokens: message.role != "user" and may_cut(message, tokens)


def _is_call(message: Message, tokens: int) -> bool:
    return bool(message.tool_calls)


def _is_result(message: Message, tokens: int) -> bool:
    return message.role == "tool"


def _anything(message: Message, tokens: int) -> bool:
    return True
