"""`compact show`: one session: its window, plan versions and model calls; one plan version; or the current prompt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from compact.cli import screen
from compact.cli.options import AsJson, ConfigFile, Session, Store
from compact.cli.store import OpenStore, open_store
from compact.core.audit.cost import by_number, by_version, dollars
from compact.core.audit.failures import failures_data, failures_of, plan_failures
from compact.core.audit.records import recorded_limits
from compact.core.messages.attachments import text_with_attachments, without_bytes

if TYPE_CHECKING:
    from compact.core.audit.cost import CallCost, CompactionCost, SessionCost
    from compact.core.audit.records import ModelCall, PlanVersion, SessionInfo
    from compact.core.engine.status import SessionStatus
    from compact.core.messages.message import Message, Slot
    from compact.core.plan.plan import Record
    from compact.core.plan.regret import RegretCount

# Chosen: what fits on a screen of 80 columns; --json has everything.
_CALLS = 10
_LINES = 3
_LINE_CHARS = 76
_ID_CHARS = 16
_PLAN_COLUMNS = ("version", "when", "before", "after", "restored", "saved", "reason")
_CALL_COLUMNS = ("call", "when", "plan", "summary", "messages", "left out", "tokens (reported)", "cost")
_REGRET_COLUMNS = ("tool", "action", "by", "recalled", "read again", "tokens")
_RECORD_COLUMNS = ("messages", "action", "by", "before", "after", "reason")

OnePlan = Annotated[
    int | None, typer.Option("--plan", metavar="VERSION", min=0, help="Show the records of one plan version instead.")
]
Prompt = Annotated[bool, typer.Option("--prompt", help="Show the current prompt instead.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class _PromptMessage:
    """A message of the prompt: its slot, with the log entries it stands for, and its tokens."""

    slot: Slot
    tokens: int


def show(
    session: Session,
    plan: OnePlan = None,
    prompt: Prompt = False,
    store: Store = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Show a session: its window, plan versions and model calls.

    The window and its limits are those of the newest call, or of an imported log. --json prints every call.
    """
    data: dict[str, Any] = {"session_id": session}
    with open_store(config, store) as opened:
        info = opened.session(session)
        if plan is None and not prompt:
            data |= _overview(opened, info, is_printed=not as_json)
        if plan is not None:
            data |= _one_plan(opened, session, plan, is_printed=not as_json)
        if prompt:
            data |= _prompt(opened, session, is_printed=not as_json)
    screen.show_warnings(opened.events)
    if as_json:
        screen.write_json(data)


# -- the session --------------------------------------------------------------------------------------------------


def _overview(opened: OpenStore, info: SessionInfo, *, is_printed: bool) -> dict[str, Any]:
    manager, session = opened.manager, info.session_id
    status, plans, calls = manager.status(session), manager.plans(session), manager.model_calls(session)
    status, cost = status_as_it_ran(status, recorded_limits(info, calls)), manager.cost(session)
    if is_printed:
        _print_status(status)
        _print_cost(cost)
        _print_regrets(status.regrets)
        _print_plans(plans, by_version(cost))
        _print_calls(calls, by_number(cost))
    return {
        "status": {**asdict(status), "usage_pct": round(status.usage_pct, 4)},
        "cost": cost.to_dict(),
        "plans": [_plan_data(entry, by_version(cost)) for entry in plans],
        "calls": [
            {**asdict(call), "at": screen.iso_time(call.at), "cost": by_number(cost)[call.number].to_dict()}
            for call in calls
        ],
    }


def status_as_it_ran(status: SessionStatus, limits: Mapping[str, int]) -> SessionStatus:
    """Return the status with the window and the thresholds that are on record, if they are."""
    if not limits:
        return status
    # In the order in which every command names them: a store may have another one.
    thresholds = {name: limits[name] for name in status.thresholds if name in limits}
    return replace(status, max_context_tokens=limits["window"], thresholds=thresholds)


def _print_status(status: SessionStatus) -> None:
    title, *lines = status_lines(status)
    screen.line(title, style="bold")
    for text in lines:
        screen.line(text)


def status_lines(status: SessionStatus) -> Iterator[str]:
    """Yield how full the window is, what each part of the prompt takes, and what became of the log."""
    used, window = status.used_tokens, status.max_context_tokens
    yield f"session {status.session_id}, turn {status.turn_number}, plan version {status.plan_version}"
    width = max(map(len, ("window", *status.parts))) + 2
    yield f"{'window':<{width}}{used:,} of {window:,} tokens ({screen.percentage(used, window)})"
    limits = ", ".join(f"{name} {tokens:,}" for name, tokens in status.thresholds.items())
    yield f"{'limits':<{width}}{limits}"
    for name, part in status.parts.items():
        messages = f", {screen.quantity(part.messages, 'message')}" if part.messages else ""
        sources = ", ".join(f"{source} {tokens:,}" for source, tokens in status.contents.get(name, {}).items())
        told = f": {sources}" if sources and list(status.contents[name]) != [name] else ""
        yield f"{name:<{width}}{screen.quantity(part.tokens, 'token')}{messages}{told}"
    actions = ", ".join(f"{count:,} {action}" for action, count in status.actions.items())
    yield f"{'log':<{width}}{screen.quantity(status.messages_in_log, 'message')}: {actions}"


def _print_cost(cost: SessionCost) -> None:
    """Print what the session cost and saved, and what must be said beside it."""
    if not cost.calls:
        return
    screen.heading("cost")
    models = ", ".join(cost.models) or "a model that was not recorded"
    screen.line(f"{'prompts':<16}{dollars(cost.prompts)} ({screen.quantity(len(cost.calls), 'call')} of {models})")
    asked = sum(bill.writing.calls for bill in cost.bills)
    by = f" ({screen.quantity(asked, 'call')} of the summariser)" if asked else " (written by code)"
    screen.line(f"{'summaries':<16}{dollars(cost.summaries)}{by if asked or not cost.summaries else ''}")
    screen.line(f"{'uncompacted':<16}{dollars(cost.uncompacted)}")
    screen.line(f"{'saved so far':<16}{dollars(cost.saved)}")
    if cost.cached_share is not None:
        told = "" if cost.cache_reported_calls == len(cost.calls) else ", an estimate"
        screen.line(f"{'from the cache':<16}{cost.cached_share:.1%} of the input tokens{told}")
    for note in cost.notes:
        screen.line(f"- {note}")


def _print_regrets(regrets: Sequence[RegretCount]) -> None:
    """Print what compactions removed and the agent asked for again, if there is any."""
    if not regrets:
        return
    screen.heading(f"{screen.quantity(sum(count.total for count in regrets), 'removed message')} asked for again")
    rows = [(c.source, c.action, c.strategy, c.recalls, c.rereads, c.tokens) for c in regrets]
    screen.table(_REGRET_COLUMNS, rows)


def _print_plans(plans: Sequence[PlanVersion], costs: Mapping[int, CompactionCost]) -> None:
    screen.heading("plan versions")
    rows = [
        (
            entry.plan.version,
            screen.local_time(entry.at),
            entry.plan.tokens_before,
            entry.plan.tokens_after,
            "" if entry.plan.origin is None else f"from {entry.plan.origin}",
            dollars(costs[entry.plan.version].net) if entry.plan.version in costs else "",
            entry.plan.reason,
        )
        for entry in plans
    ]
    if rows:
        screen.table(_PLAN_COLUMNS, rows)
        for failed in failures_of((), plans):
            screen.line(f"{failed.where}: {failed.failure}", style="bold red")
    else:
        screen.line("none: it was never compacted")


def _print_calls(calls: Sequence[ModelCall], costs: Mapping[int, CallCost]) -> None:
    newest = calls[-_CALLS:]
    count = screen.quantity(len(calls), "model call")
    screen.heading(count if len(newest) == len(calls) else f"the last {_CALLS} of {count}; --json has all")
    if newest:
        rows = [
            (
                call.number,
                screen.local_time(call.at),
                call.plan_version,
                call.summary_version,
                call.messages,
                call.evicted,
                f"{call.tokens_estimated:,}" + ("" if call.tokens_reported is None else f" ({call.tokens_reported:,})"),
                dollars(costs[call.number].cost),
            )
            for call in newest
        ]
        screen.table(_CALL_COLUMNS, rows)
        for failed in failures_of(calls, ()):
            screen.line(f"{failed.where}: {failed.failure}", style="bold red")


def _plan_data(entry: PlanVersion, costs: Mapping[int, CompactionCost]) -> dict[str, Any]:
    plan = entry.plan
    actions = Counter[str]()
    for record in plan.records:
        actions[record.action.value] += len(record.span)
    return {
        "version": plan.version,
        "at": screen.iso_time(entry.at),
        "tokens_before": plan.tokens_before,
        "tokens_after": plan.tokens_after,
        "restored_from": plan.origin,
        "actions": dict(actions),
        "reason": plan.reason,
        "cost": costs[plan.version].to_dict() if plan.version in costs else None,
        "failures": failures_data(plan_failures(plan)),
    }


# -- one plan -----------------------------------------------------------------------------------------------------


def _one_plan(opened: OpenStore, session: str, version: int, *, is_printed: bool) -> dict[str, Any]:
    entry = opened.plan_version(session, version)
    plan = entry.plan
    if is_printed:
        tokens = f"{plan.tokens_before:,} → {plan.tokens_after:,} tokens"
        made = f"{screen.local_time(entry.at)}, {tokens}; {plan.reason}"
        screen.line(f"version {version}: {made if version else 'the history without any compaction'}", style="bold")
        for failure in plan_failures(plan):
            screen.line(str(failure), style="bold red")
        if plan.records:
            screen.line()
            screen.table(_RECORD_COLUMNS, [_record_row(record) for record in plan.records])
    return {"plan": {**plan.to_dict(), "at": screen.iso_time(entry.at)}}


def _record_row(record: Record) -> tuple[object, ...]:
    span, size = record.span, len(record.span)
    # Long ids would leave no room for the reasons.
    first, last = (screen.truncate(message_id, _ID_CHARS) for message_id in (span.first, span.last))
    ids = first if size == 1 else f"{first} … {last} ({size:,})"
    return ids, record.action.value, record.strategy, record.tokens_before, record.tokens_after, record.reason


# -- the prompt ---------------------------------------------------------------------------------------------------


def _prompt(opened: OpenStore, session: str, *, is_printed: bool) -> dict[str, Any]:
    from compact.tokens import get_tokenizer

    settings = opened.manager.config
    count = get_tokenizer(settings.model, settings.tokenizer).count_message
    messages = [_PromptMessage(slot=slot, tokens=count(slot.message)) for slot in opened.manager.prompt(session).slots]
    if is_printed:
        tokens = sum(message.tokens for message in messages)
        screen.line(f"{screen.quantity(len(messages), 'message')}, {screen.quantity(tokens, 'token')}", style="bold")
        for number, message in enumerate(messages, start=1):
            _print_message(number, message)
    return {"prompt": [_message_data(message) for message in messages]}


def _print_message(number: int, prompt_message: _PromptMessage) -> None:
    message, ids = prompt_message.slot.message, prompt_message.slot.ids
    tokens = screen.quantity(prompt_message.tokens, "token")
    source = (
        f"stands for {len(ids):,} messages" if len(ids) > 1 else ids[0] if ids else "added to make the prompt legal"
    )
    screen.heading(f"{number:,}  {message.role}, {tokens}, {source}")
    lines = [line for line in _message_lines(message) if line.strip()]
    for line in lines[:_LINES]:
        screen.line("   " + screen.truncate(screen.printable(line.rstrip()), _LINE_CHARS))
    if len(lines) > _LINES:
        screen.line(f"   and {screen.quantity(len(lines) - _LINES, 'more line')}")


def _message_lines(message: Message) -> Iterator[str]:
    yield from text_with_attachments(message).splitlines()
    for call in message.tool_calls:
        yield f"{call.name}({call.arguments})"


def _message_data(prompt_message: _PromptMessage) -> dict[str, Any]:
    message = prompt_message.slot.message
    return {
        "ids": list(prompt_message.slot.ids),
        "role": message.role,
        "tokens": prompt_message.tokens,
        "content": without_bytes(message).content,
        "tool_calls": [asdict(call) for call in message.tool_calls],
        "tool_call_id": message.tool_call_id,
    }
