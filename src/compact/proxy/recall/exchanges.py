"""Hidden calls and their results, and how they get back into later requests.

The agent never saw them, so its next request has only the calls it was shown. Before that request is compacted, what
was hidden is put back beside them: the model sees what it has read, and the log has it like any other call. A hidden
call is found again by the id of the agent's own call that came with it or after it. An answer that ended without a call
of the agent's own is complete: nothing is put back.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compact.adapters.support import RecentDict
from compact.core.json_data import is_list, is_mapping
from compact.proxy.recall.answer import Answer, HiddenCall, mapping
from compact.proxy.recall.anthropic import hidden_block, hidden_result
from compact.proxy.recall.chat import hidden_chat_call
from compact.proxy.recall.responses import hidden_item, hidden_output

# Chosen: an agent recalls now and then; what is older has most likely been compacted since.
_MOST_PER_SESSION = 200


@dataclass(frozen=True, slots=True)
class HiddenRound:
    """What the agent was shown before hidden calls, and the calls with their results."""

    shown: tuple[Any, ...]
    calls: tuple[HiddenCall, ...]
    results: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class HiddenExchange:
    """The rounds before the agent's own call, and those calls that came in one answer with it."""

    rounds: tuple[HiddenRound, ...]
    beside: HiddenRound | None = None


class ExchangeMemory:
    """Keeps hidden exchanges by session and by the agent's own call; safe to share between threads."""

    def __init__(self) -> None:
        self._sessions: RecentDict[str, RecentDict[str, HiddenExchange]] = RecentDict()
        self._lock = threading.Lock()

    def keep(self, session_id: str, answer: Answer, results: Sequence[Mapping[str, str]]) -> None:
        """Keep what was hidden in an answer whose last round has calls of the agent's own; `results` are per round."""
        anchor = next((call_id for call_id in answer.round.own_call_ids if call_id), "")
        if not anchor:
            return
        rounds = [
            HiddenRound(tuple(each.shown), tuple(each.hidden), found)
            for each, found in zip(answer.rounds, results, strict=False)
        ]
        beside = rounds.pop() if answer.round.hidden else None
        with self._lock:
            kept = self._sessions.get(session_id) or RecentDict(_MOST_PER_SESSION)
            kept[anchor] = HiddenExchange(tuple(rounds), beside)
            self._sessions[session_id] = kept

    def forget(self, session_id: str) -> None:
        """Keep nothing of a session any longer."""
        with self._lock:
            self._sessions.pop(session_id, None)

    def restore(self, session_id: str, dialect: str, items: list[Any]) -> list[Any]:
        """Return a request's items with what was hidden; the same list if there is nothing."""
        with self._lock:
            kept = dict(self._sessions.get(session_id) or {})
        if not kept:
            return items
        # Some servers use an id again: then nobody knows which of the calls is meant.
        counts = Counter(call_id for item in items for call_id in _call_ids(item))
        found = {call_id: exchange for call_id, exchange in kept.items() if counts[call_id] == 1}
        return _RESTORE[dialect](items, found) if found else items


def _call_ids(item: object) -> Iterator[str]:
    """Yield the ids of the calls in an item of any wire."""
    if not is_mapping(item):
        return
    kind = str(item.get("type") or "")
    if kind.endswith("_call") and item.get("call_id"):
        yield str(item["call_id"])
    if item.get("role") != "assistant":
        return
    for holder in (item.get("tool_calls"), item.get("content")):
        for call in holder if is_list(holder) else ():
            if (
                is_mapping(call)
                and call.get("id")
                and call.get("type", "function") in ("function", "custom", "tool_use")
            ):
                yield str(call["id"])


def _exchange_of(item: object, found: Mapping[str, HiddenExchange]) -> HiddenExchange | None:
    return next((found[call_id] for call_id in _call_ids(item) if call_id in found), None)


# -- Chat Completions --------------------------------------------------------------------------------------------------


def _restore_chat(items: list[Any], found: Mapping[str, HiddenExchange]) -> list[Any]:
    restored: list[Any] = []
    for item in items:
        exchange = _exchange_of(item, found)
        restored += _chat_messages(item, exchange) if exchange else [item]
    return restored


def _chat_messages(message: Mapping[str, Any], exchange: HiddenExchange) -> Iterator[Any]:
    content = message.get("content")
    for each in exchange.rounds:
        text = "".join(each.shown)
        # A text that the agent has changed stays where the agent has it.
        is_known = bool(text) and isinstance(content, str) and content.startswith(text)
        if is_known and isinstance(content, str):
            content = content.removeprefix(text).lstrip("\n") or None
        calls = [hidden_chat_call(call) for call in each.calls]
        yield {"role": "assistant", "content": text if is_known else None, "tool_calls": calls}
        yield from _chat_results(each)
    calls = [hidden_chat_call(call) for call in exchange.beside.calls] if exchange.beside else []
    is_same = content is message.get("content") and not calls
    yield message if is_same else {**message, "content": content, "tool_calls": [*message["tool_calls"], *calls]}
    if exchange.beside:
        yield from _chat_results(exchange.beside)


def _chat_results(each: HiddenRound) -> Iterator[Any]:
    return ({"role": "tool", "tool_call_id": call_id, "content": text} for call_id, text in each.results.items())


# -- Anthropic Messages ------------------------------------------------------------------------------------------------


def _restore_anthropic(items: list[Any], found: Mapping[str, HiddenExchange]) -> list[Any]:
    restored: list[Any] = []
    results: list[Any] = []
    for item, follower in zip(items, [*items[1:], None], strict=True):
        shown = {**item, "content": [*results, *item["content"]]} if results else item
        results = []
        exchange = _exchange_of(item, found)
        # Results of calls that came together are in the next message: without one there is nothing to be right.
        if exchange is None or (exchange.beside and not is_list(mapping(follower).get("content"))):
            restored.append(shown)
            continue
        restored += _anthropic_messages(item, exchange)
        results = _result_blocks(exchange.beside) if exchange.beside else []
    return restored


def _anthropic_messages(message: Mapping[str, Any], exchange: HiddenExchange) -> Iterator[Any]:
    blocks = list(message["content"])
    for each in exchange.rounds:
        own = _take_known(blocks, each.shown, _block_key)
        calls = [hidden_block(call) for call in each.calls]
        yield {"role": "assistant", "content": [*own, *calls]}
        yield {"role": "user", "content": _result_blocks(each)}
    beside = [hidden_block(call) for call in exchange.beside.calls] if exchange.beside else []
    yield {**message, "content": [*blocks, *beside]}


def _result_blocks(each: HiddenRound) -> list[Any]:
    return [hidden_result(call_id, text) for call_id, text in each.results.items()]


def _block_key(block: Mapping[str, Any]) -> tuple[str, str]:
    for name in ("id", "signature", "data", "text", "thinking"):
        if block.get(name):
            return str(block.get("type")), str(block[name])
    return str(block.get("type")), ""


# -- Responses ---------------------------------------------------------------------------------------------------------


def _restore_responses(items: list[Any], found: Mapping[str, HiddenExchange]) -> list[Any]:
    restored: list[Any] = []
    start = 0  # of what the model made since the last item of somebody else
    for item in items:
        exchange = _exchange_of(item, found)
        if exchange:
            made = restored[start:]
            restored[start:] = [*_response_items(made, exchange)]
        restored.append(item)
        if not _is_model_made(item):
            start = len(restored)
    return restored


def _response_items(made: list[Any], exchange: HiddenExchange) -> Iterator[Any]:
    """Yield what the model made before the agent's own call, with what was hidden."""
    for each in exchange.rounds:
        yield from _take_known(made, each.shown, _item_key)
        yield from map(hidden_item, each.calls)
        yield from _outputs(each)
    yield from made
    if exchange.beside:
        yield from map(hidden_item, exchange.beside.calls)
        yield from _outputs(exchange.beside)


def _outputs(each: HiddenRound) -> Iterator[Any]:
    return (hidden_output(call_id, text) for call_id, text in each.results.items())


def _is_model_made(item: object) -> bool:
    fields = mapping(item)
    kind = str(fields.get("type") or "message")
    return fields.get("role") == "assistant" if kind == "message" else not kind.endswith("_output")


def _item_key(item: Mapping[str, Any]) -> tuple[str, str]:
    content = item.get("content")
    texts = [str(mapping(part).get("text") or "") for part in content] if is_list(content) else [str(content or "")]
    kind = str(item.get("type") or "message")
    # Some agents send items without their ids.
    known = item.get("call_id") or item.get("encrypted_content") or "".join(texts)
    return kind, str(known or item.get("id") or "")


def _take_known(pieces: list[Any], shown: Sequence[Any], key: Callable[[Any], object]) -> list[Any]:
    """Remove from the front what an earlier round had shown, and return it; the agent may have left some of it out."""
    taken: list[Any] = []
    for piece in shown:
        if pieces and is_mapping(pieces[0]) and key(pieces[0]) == key(piece):
            taken.append(pieces.pop(0))
    return taken


_RESTORE: Mapping[str, Callable[[list[Any], Mapping[str, HiddenExchange]], list[Any]]] = {
    "chat": _restore_chat,
    "anthropic": _restore_anthropic,
    "responses": _restore_responses,
}
