"""A server whose window is smaller than the manager is told, and turns that need twice of it.

One request is refused, in the provider's own words; it is sent again, smaller, and from there on every request fits.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from adapters.enforced_window import INSTRUCTIONS, TOOL, Enforced, enforced, question
from compact.core.engine.events import CompactionErrorEvent, ContextOverflowEvent

PAGE: dict[str, Any] = {"type": "object", "properties": {"page": {"type": "integer"}}, "required": ["page"]}
CHAT_TOOL: Any = {"type": "function", "function": {"name": TOOL, "description": "One page.", "parameters": PAGE}}
TRUE_WINDOW, TOLD_WINDOW = 8_192, 32_000
TURNS = 14
MODEL = "gpt-4o"


@contextmanager
def too_small(window_tokens: int = TRUE_WINDOW) -> Iterator[Enforced]:
    """A server whose window is smaller than the manager is told; all turns together need twice of it."""
    with enforced(window_tokens, counted_as="gpt-4o", register_tokens=100_000, told_window=TOLD_WINDOW) as run:
        yield run


def check(run: Enforced, *, says_limit: bool = True) -> None:
    """One request was refused and learned from; each turn got its answers, and nothing else failed."""
    assert len(run.model.rejections) == 1, run.model.rejections
    assert len(run.model.requests) == 2 * TURNS + 1
    overflows = run.sink.of(ContextOverflowEvent)
    assert [event.window_tokens for event in overflows] == [TOLD_WINDOW], [event.message for event in overflows]
    learned = overflows[0].learned_tokens
    assert learned == TRUE_WINDOW if says_limit else 2_048 < learned < TOLD_WINDOW
    assert not run.sink.of(CompactionErrorEvent)


def chat_turns(run: Enforced, ask: Callable[[list[Any]], dict[str, Any]]) -> None:
    """Ask the questions, and answer each call, in Chat Completions."""
    history: list[dict[str, Any]] = []
    for number in range(1, TURNS + 1):
        history.append({"role": "user", "content": question(number)})
        for _ in range(2):
            answer = ask(history)
            history.append({key: answer[key] for key in ("role", "content", "tool_calls") if answer.get(key)})
            for call in answer.get("tool_calls") or ():
                page = json.loads(call["function"]["arguments"])["page"]
                history.append({"role": "tool", "tool_call_id": call["id"], "content": run.register.page(page)})


def with_system(messages: Sequence[Any]) -> list[Any]:
    return [{"role": "system", "content": INSTRUCTIONS}, *messages]
