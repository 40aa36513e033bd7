"""`compact show`: one session: how full it is, its plan versions, its model calls, its prompt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from compact.cli import screen
from compact.cli.options import AsJson, ConfigFile, Session, Store
from compact.cli.sessions import iso_time, local_time
from compact.cli.settings import OpenStore, open_store

if TYPE_CHECKING:
    from compact.core.audit.records import ModelCall, PlanVersion
    from compact.core.engine.status import SessionStatus
    from compact.core.log.messages import Message, Slot
    from compact.core.plan.plan import Record

_CALLS = 10
_LINES = 3
_LINE_CHARS = 76
# Long ids would leave no room for the reasons; --json has them whole.
_ID_CHARS = 16
_PLAN_COLUMNS = ("version", "when", "before", "after", "restored", "reason")
_CALL_COLUMNS = ("call", "when", "plan", "summary", "messages", "evicted", "tokens (reported)")
_RECORD_COLUMNS = ("messages", "action", "by", "before", "after", "reason")

OnePlan = Annotated[
    int | None, typer.Option("--plan", metavar="VERSION", min=0, help="Show the records of one plan version instead.")
]
Prompt = Annotated[bool, typer.Option("--prompt", help="Show the prompt as it stands instead.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """One message of the prompt with its tokens, and the log entries it stands for."""

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

    The store does not know how large the agent's window is: the settings here decide. --json has every call.
    """
    data: dict[str, Any] = {"session_id": session}
    with open_store(config, store) as opened:
        opened.session(session)
        if plan is None and not prompt:
            data |= _overview(opened, session, is_drawn=not as_json)
        if plan is not None:
            data |= _one_plan(opened, session, plan, is_drawn=not as_json)
        if prompt:
            data |= _prompt(opened, session, is_drawn=not as_json)
    screen.warn_about(opened.events)
    if as_json:
        screen.write_json(data)


# -- the whole ----------------------------------------------------------------------------------------------------


def _overview(opened: OpenStore, session: str, *, is_drawn: bool) -> dict[str, Any]:
    manager = opened.manager
    status, plans, calls = manager.status(session), manager.plans(session), manager.model_calls(session)
    if is_drawn:
        _draw_status(status)
        _draw_plans(plans)
        _draw_calls(calls)
    return {
        "status": {**asdict(status), "usage_pct": round(status.usage_pct, 4)},
        "plans": [_plan_data(entry) for entry in plans],
        "calls": [{**asdict(call), "at": iso_time(call.at)} for call in calls],
    }


def _draw_status(status: SessionStatus) -> None:
    used, window = status.used_tokens, status.max_context_tokens
    screen.line(
        f"session {status.session_id}, turn {status.turn_number}, plan version {status.plan_version}", style="bold"
    )
    screen.line(f"window   {used:,} of {window:,} tokens ({screen.share(used, window)})")
    screen.line("limits   " + ", ".join(f"{name} {tokens:,}" for name, tokens in status.thresholds.items()))
    for name, layer in status.layers.items():
        screen.line(f"{name:<9}{screen.counted(layer.messages, 'message')}, {screen.counted(layer.tokens, 'token')}")
    actions = ", ".join(f"{count:,} {action}" for action, count in status.actions.items())
    screen.line(f"log      {screen.counted(status.messages_in_log, 'message')}: {actions}")


def _draw_plans(plans: Sequence[PlanVersion]) -> None:
    screen.heading("plan versions")
    rows = [
        (
            entry.plan.version,
            local_time(entry.at),
            entry.plan.tokens_before,
            entry.plan.tokens_after,
            "" if entry.plan.origin is None else f"from {entry.plan.origin}",
            entry.plan.reason,
        )
        for entry in plans
    ]
    if rows:
        screen.table(_PLAN_COLUMNS, rows)
    else:
        screen.line("none: it was never compacted")


def _draw_calls(calls: Sequence[ModelCall]) -> None:
    newest = calls[-_CALLS:]
    count = screen.counted(len(calls), "model call")
    screen.heading(count if len(newest) == len(calls) else f"the last {_CALLS} of {count}; --json has all")
    if newest:
        rows = [
            (
                call.number,
                local_time(call.at),
                call.plan_version,
                call.summary_version,
                call.messages,
                call.evicted,
                f"{call.tokens_estimated:,}" + ("" if call.tokens_reported is None else f" ({call.tokens_reported:,})"),
            )
            for call in newest
        ]
        screen.table(_CALL_COLUMNS, rows)


def _plan_data(entry: PlanVersion) -> dict[str, Any]:
    plan = entry.plan
    actions = Counter[str]()
    for record in plan.records:
        actions[record.action.value] += len(record.span)
    return {
        "version": plan.version,
        "at": iso_time(entry.at),
        "tokens_before": plan.tokens_before,
        "tokens_after": plan.tokens_after,
        "restored_from": plan.origin,
        "actions": dict(actions),
        "reason": plan.reason,
    }


# -- one plan -----------------------------------------------------------------------------------------------------


def _one_plan(opened: OpenStore, session: str, version: int, *, is_drawn: bool) -> dict[str, Any]:
    entry = opened.version(session, version)
    plan = entry.plan
    if is_drawn:
        when = f"{local_time(entry.at)}, {plan.tokens_before:,} → {plan.tokens_after:,} tokens; {plan.reason}"
        screen.line(f"version {version}: {when if version else 'the history without any compaction'}", style="bold")
        if plan.records:
            screen.line()
            screen.table(_RECORD_COLUMNS, [_record_row(record) for record in plan.records])
    return {"plan": {**plan.to_dict(), "at": iso_time(entry.at)}}


def _record_row(record: Record) -> tuple[object, ...]:
    span, size = record.span, len(record.span)
    first, last = (screen.clipped(message_id, _ID_CHARS) for message_id in (span.first, span.last))
    ids = first if size == 1 else f"{first} … {last} ({size:,})"
    return ids, record.action.value, record.strategy, record.tokens_before, record.tokens_after, record.reason


# -- the prompt ---------------------------------------------------------------------------------------------------


def _prompt(opened: OpenStore, session: str, *, is_drawn: bool) -> dict[str, Any]:
    from compact.tokens import get_tokenizer

    settings = opened.manager.config
    count = get_tokenizer(settings.model, settings.tokenizer).count_message
    places = [_Place(slot=slot, tokens=count(slot.message)) for slot in opened.manager.prompt(session).slots]
    if is_drawn:
        tokens = sum(place.tokens for place in places)
        screen.line(f"{screen.counted(len(places), 'message')}, {tokens:,} tokens", style="bold")
        for number, place in enumerate(places, start=1):
            _draw_place(number, place)
    return {"prompt": [_place_data(place) for place in places]}


def _draw_place(number: int, place: _Place) -> None:
    message, ids = place.slot.message, place.slot.ids
    stands_for = f"stands for {len(ids):,} messages" if len(ids) > 1 else ids[0] if ids else "put in to make it legal"
    screen.heading(f"{number:,}  {message.role}, {screen.counted(place.tokens, 'token')}, {stands_for}")
    lines = [line for line in _said(message) if line.strip()]
    for line in lines[:_LINES]:
        screen.line("   " + screen.clipped(screen.printable(line.rstrip()), _LINE_CHARS))
    if len(lines) > _LINES:
        screen.line(f"   and {screen.counted(len(lines) - _LINES, 'more line')}")


def _said(message: Message) -> Iterator[str]:
    yield from message.text.splitlines()
    for call in message.tool_calls:
        yield f"{call.name}({call.arguments})"


def _place_data(place: _Place) -> dict[str, Any]:
    message = place.slot.message
    return {
        "ids": list(place.slot.ids),
        "role": message.role,
        "tokens": place.tokens,
        "content": message.content,
        "tool_calls": [asdict(call) for call in message.tool_calls],
        "tool_call_id": message.tool_call_id,
    }
