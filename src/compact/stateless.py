"""The engine as plain functions, for loops that keep nothing but their list of messages.

Nothing is remembered between two calls and nothing is written: the previous summary is recognised in the list itself.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Generic, TypeVar, cast

from compact.arguments import CompactionOptions, check_messages, checked_config
from compact.assembly.budget import build_budget
from compact.assembly.engines import EngineBuilder
from compact.config import CompactConfig
from compact.core.audit.records import SessionHead, StoredMessage, StoredSession
from compact.core.engine.engine import Engine
from compact.core.engine.events import CompactionEvent
from compact.core.messages.entries import read_entry
from compact.core.messages.groups import group_messages
from compact.core.messages.message import Message
from compact.core.messages.tokenizer import ProviderAwareTokenizer
from compact.core.messages.turn_order import LEFT_OUT
from compact.core.plan.layers import KeepRules
from compact.core.plan.plan import CompactionPlan, SpanReference, SummarizationRecord
from compact.core.plan.renderer import summary_message
from compact.core.plan.strategy import SUMMARIZE
from compact.core.session.session import Session
from compact.core.summary.parsing import ParsedSummary, parse_summary_text
from compact.core.summary.summarizer import Summarizer
from compact.dialects import CHAT, Block, detect
from compact.dialects.gateway import Gateway
from compact.dialects.objects import PlainItems, check_items, plain_item
from compact.manager import CompactManager
from compact.runner import run_steps
from compact.stores.memory import InMemoryCompactionStore
from compact.tokens import get_tokenizer

_log = logging.getLogger("compact")
M = TypeVar("M")
# The id of the entry that stands for everything an earlier summary stood for.
_SUMMARISED = "summarised-before"


@dataclass(frozen=True, slots=True)
class CompactionSelection(Generic[M]):
    """Which messages would go, which stay, and the text of the summary of the round before."""

    messages_to_compact: list[M]
    messages_to_keep: list[M]
    previous_summary: str | None = None


@dataclass(frozen=True, slots=True)
class CompactedHistory(Generic[M]):
    """A compacted history, and what was done to it; `round` is 0 if nothing was."""

    compacted_messages: list[M]
    round: int
    tokens_before: int
    tokens_after: int
    summary_content: str
    compacted_message_ids: tuple[str, ...]


def estimate_tokens(text: str, config: CompactConfig | None = None) -> int:
    """Return the tokens of a text.

    Args:
        text: The text.
        config: Names the model, which decides the token counter; `CompactConfig()` by default.

    Returns:
        The tokens: exact where the model's vocabulary is known, an estimate for other models.

    Example:
        >>> from compact import estimate_tokens
        >>> estimate_tokens("Hello, world!")
        4
    """
    config = config or _default_config()
    return get_tokenizer(config.model, config.tokenizer).count_text(text) if text else 0


def estimate_messages_tokens(messages: Sequence[object], config: CompactConfig | None = None) -> int:
    """Return the tokens of a history, with what its wire format adds to each message.

    Args:
        messages: The history, in any dialect.
        config: Names the model, which decides the token counter; `CompactConfig()` by default.

    Returns:
        The tokens of all messages; tool schemas and instructions sent beside them are not in it.

    Raises:
        InvalidHistory: The list cannot be read as messages; the error names the place.

    Example:
        >>> from compact import estimate_messages_tokens
        >>> estimate_messages_tokens([{"role": "user", "content": "Hello, world!"}])
        8
    """
    config = config or _default_config()
    count = get_tokenizer(config.model, config.tokenizer).count_message
    return sum(count(message) for message in _read(_blocks(messages)))


def should_compact(messages: Sequence[object], config: CompactConfig | None = None) -> bool:
    """Return True once a history has reached the trigger.

    Args:
        messages: The history, in any dialect.
        config: Has the model, its window and the trigger; `CompactConfig()` by default.

    Returns:
        True from the trigger on: 85 % of the window by default, and 200,000 tokens in windows above 256,000.

    Raises:
        InvalidHistory: The list cannot be read as messages; the error names the place.
        ConfigError: The reserves leave nothing of the window.

    Example:
        >>> from compact import CompactConfig, should_compact
        >>> history = [{"role": "user", "content": "word " * 6_000}]
        >>> should_compact(history), should_compact(history, CompactConfig(max_context_tokens=4_096))
        (False, True)
    """
    config = config or _default_config()
    budget = build_budget(config)
    return budget.is_triggered(estimate_messages_tokens(messages, config) + budget.fixed_tokens)


def select_messages_to_compact(messages: Sequence[M], keep_last: int = 10) -> CompactionSelection[M]:
    """Split a history so that at least the newest messages stay, and no call parts from its result.

    System, developer and protected messages stay too.

    Args:
        messages: The history, in any dialect.
        keep_last: How many of the newest messages stay at least.

    Returns:
        A `CompactionSelection`: `messages_to_compact`, `messages_to_keep`, and as `previous_summary` the text of the
        summary of an earlier round, if the history has one.

    Raises:
        InvalidHistory: The list cannot be read as messages; the error names the place.

    Example:
        >>> from compact import select_messages_to_compact
        >>> from compact.testing import dialogue
        >>> selection = select_messages_to_compact(dialogue(20), keep_last=6)
        >>> len(selection.messages_to_compact), len(selection.messages_to_keep)
        (34, 6)
    """
    blocks = _blocks(messages)
    read = _read(blocks)
    rules = KeepRules()
    groups = group_messages(read)
    pinned = (group for group in groups if any(rules.pins(read[index]) for index in group.indices))
    kept: set[int] = {index for group in pinned for index in group.indices}
    recent = 0
    for group in reversed(groups):
        if recent >= keep_last:
            break
        kept.update(group.indices)
        recent += len(group.indices)
    to_compact: list[M] = []
    to_keep: list[M] = []
    place = 0
    for block in blocks:
        end = place + len(block.entries)
        (to_keep if not kept.isdisjoint(range(place, end)) else to_compact).extend(block.items)
        place = end
    previous = _previous_summary(read, rules)
    return CompactionSelection(to_compact, to_keep, read[previous.place].text if previous else None)


def compact(
    messages: Sequence[M],
    session_id: str = "",
    *,
    config: CompactConfig | None = None,
    tokenizer: ProviderAwareTokenizer | None = None,
    summarizer: Summarizer | None = None,
    target_tokens: int | None = None,
    focus: str = "",
    manager: CompactManager | None = None,
) -> CompactedHistory[M]:
    """Compact a history now, without a session; a summary of an earlier round in it is taken up into the new one.

    Nothing is remembered and nothing is written. To keep the log, recall and undo, use a `CompactManager`.

    Args:
        messages: The history, in any dialect.
        session_id: Names the history in errors, nothing else.
        config: The settings; `CompactConfig()` by default.
        tokenizer: Counts tokens; by default the counter of the configured model.
        summarizer: Writes the summary: a function of a `SummaryRequest`. By default code does, or the configured model.
        target_tokens: The most tokens that the whole returned list may take; by default as the settings say.
        focus: What is kept first: `"the refund policy"`.
        manager: Deprecated: call `manager.manual_compact`.

    Returns:
        A `CompactedHistory`: `compacted_messages`, the `round` (0 if there was nothing to do), `tokens_before` and
        `tokens_after`, `summary_content`, and the ids that were compacted.

    Raises:
        InsufficientBudget: What must stay takes more tokens than there are.
        InvalidHistory: The list cannot be read as messages; the error names the place.
        ConfigError: The reserves leave nothing of the window.
        SummaryFailed: The summary failed, and `summarizer.on_failure` is `raise`.

    Example:
        >>> from compact import CompactConfig, compact
        >>> from compact.testing import tool_run
        >>> history = tool_run(60, words=200)
        >>> done = compact(history, config=CompactConfig(max_context_tokens=8_000))
        >>> done.round, done.tokens_after < done.tokens_before
        (1, True)
        >>> messages = done.compacted_messages  # send these
    """
    if manager is not None:
        warnings.warn("call manager.manual_compact instead of compact(manager=…)", DeprecationWarning, stacklevel=2)
        return _compact_with(manager, messages, session_id or "default", target_tokens, focus)
    asked = CompactionOptions(focus=focus, target_tokens=target_tokens)
    check_messages(messages)
    config, gateway = checked_config(config) if config is not None else _default_config(), Gateway()
    gateway.select_dialect(messages, None)
    entries = gateway.to_entries()
    engine = EngineBuilder(emit=_discard, store=InMemoryCompactionStore(), tokenizer=tokenizer, summarizer=summarizer)(
        config
    )
    entries = _without_opening(entries, engine.compactor.rules)
    session = _session_of(entries, session_id or "history", engine)
    before = session.plan.version
    budget = build_budget(config)
    session.set_budget(budget)
    engine.compactor.render(session)
    goal = engine.trigger.manual_goal(session, budget, asked.target_tokens, focus=asked.kept_first)
    run_steps(engine.compactor.compact(session, goal, "manual"))
    if session.plan.version == before:
        tokens = session.prompt_tokens
        return CompactedHistory(list(messages), 0, tokens, tokens, "", ())
    own = {message.id: entry for message, entry in zip(session.log.entries, entries, strict=True)}
    items = session.prompt.items
    prompt = [own[owner] if owner else original for owner, original in zip(items.owners, items.originals, strict=True)]
    return _result(cast(list[M], gateway.to_items(prompt)), session.plan)


def _compact_with(
    manager: CompactManager, messages: Sequence[M], session_id: str, target_tokens: int | None, focus: str
) -> CompactedHistory[M]:
    version_before = manager.current_plan(session_id).version
    compacted = manager.manual_compact(session_id, messages, target_tokens=target_tokens, focus=focus)
    plan = manager.current_plan(session_id)
    if plan.version == version_before:
        tokens = estimate_messages_tokens(compacted, manager.config)
        return CompactedHistory(compacted, 0, tokens, tokens, "", ())
    return _result(compacted, plan)


def _result(compacted: list[M], plan: CompactionPlan) -> CompactedHistory[M]:
    summary = summary_message(plan.summary).text if plan.summary else ""
    ids = tuple(dict.fromkeys(message_id for record in plan.records for message_id in record.span))
    return CompactedHistory(compacted, plan.version, plan.tokens_before, plan.tokens_after, summary, ids)


def safe_compact(
    messages: Sequence[M],
    session_id: str = "",
    *,
    config: CompactConfig | None = None,
    manager: CompactManager | None = None,
) -> list[M]:
    """Return the compacted history; if that fails, return it as it is and log why.

    Args:
        messages: The history, in any dialect.
        session_id: Names the history in errors, nothing else.
        config: The settings; `CompactConfig()` by default.
        manager: Deprecated: call `manager.manual_compact`.

    Returns:
        The messages to send.

    Example:
        >>> from compact import CompactConfig, safe_compact
        >>> from compact.testing import tool_run
        >>> history = tool_run(60, words=200)
        >>> len(safe_compact(history, config=CompactConfig(max_context_tokens=8_000))) < len(history)
        True
    """
    try:
        return compact(messages, session_id, config=config, manager=manager).compacted_messages
    except Exception as error:  # noqa: BLE001 - whatever goes wrong, the agent goes on with what it has
        _log.warning("compaction failed, continuing without it: %s", error)
        return list(messages)


@dataclass(frozen=True, slots=True)
class _PreviousSummary:
    place: int
    parsed: ParsedSummary


def _previous_summary(messages: Sequence[Message], rules: KeepRules) -> _PreviousSummary | None:
    """Return the summary of an earlier round: it is the first message behind the pinned ones and our opening line."""
    for place, message in enumerate(messages):
        if rules.pins(message) or _is_opening(message):
            continue
        parsed = parse_summary_text(message.text) if message.role in ("assistant", "user") else None
        return _PreviousSummary(place, parsed) if parsed else None
    return None


def _is_opening(message: Message) -> bool:
    return message.role == "user" and message.text == LEFT_OUT


def _without_opening(entries: Sequence[object], rules: KeepRules) -> list[object]:
    """Return a history without the line that stands before its summary: each round writes its own."""
    read = [read_entry(entry, f"messages[{place}]") for place, entry in enumerate(entries)]
    previous = _previous_summary(read, rules)
    opening = previous.place - 1 if previous and previous.place and _is_opening(read[previous.place - 1]) else None
    return [entry for place, entry in enumerate(entries) if place != opening]


def _session_of(entries: Sequence[object], session_id: str, engine: Engine) -> Session:
    """Return a session with this history, and with the plan that an earlier summary in it came from."""
    count = engine.tokenizer.count_message
    read = [read_entry(entry, f"messages[{place}]") for place, entry in enumerate(entries)]
    previous = _previous_summary(read, engine.compactor.rules)
    plan = CompactionPlan(session_id)
    log: list[StoredMessage] = []
    for place, message in enumerate(read):
        own = replace(message, id=f"m{place + 1}")
        if previous and place == previous.place:
            parsed = previous.parsed
            own = Message("assistant", parsed.summary.narrative, id=_SUMMARISED, original=message.original)
            record = SummarizationRecord(
                span=SpanReference((_SUMMARISED,)),
                strategy=SUMMARIZE,
                reason="an earlier round",
                tokens_after=count(message),
                version=parsed.version,
                summary=parsed.summary,
            )
            pinned = tuple(entry.message.id for entry in log)
            plan = CompactionPlan(session_id, version=parsed.version, records=(record,), pinned=pinned)
        log.append(StoredMessage(place + 1, own, count(own)))
    return Session.resumed(
        StoredSession(
            session_id=session_id,
            head=SessionHead(len(log), plan.version),
            messages=tuple(log),
            view_ids=tuple(entry.message.id for entry in log),
            plan=plan,
        )
    )


def _discard(event: CompactionEvent) -> None:
    """Drop an event: nobody listens to a plain function."""


def _blocks(messages: Sequence[object]) -> list[Block]:
    """Return a history in the blocks of whatever dialect it is in."""
    check_items(messages)
    items = PlainItems[object].read(messages, plain_item)
    blocks = (detect(items.plain) or CHAT).read(items.plain, 0)
    return [Block(tuple(items.restore(block.items)), block.entries) for block in blocks]


def _read(blocks: Sequence[Block]) -> list[Message]:
    entries = [entry for block in blocks for entry in block.entries]
    return [read_entry(entry, f"messages[{place}]") for place, entry in enumerate(entries)]


@lru_cache(maxsize=1)
def _default_config() -> CompactConfig:
    return CompactConfig()
