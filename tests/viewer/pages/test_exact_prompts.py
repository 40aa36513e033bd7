"""The prompt of any call, made again from what was written down, is what went out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compact.viewer.pages.call import call_page
from compact.viewer.source import DataSource
from viewer import seeding

SESSIONS = (seeding.BUSY, seeding.UNDONE, seeding.INJECTED, seeding.EDITED, seeding.HOSTILE, seeding.INVENTED)


@pytest.mark.parametrize("session_id", SESSIONS)
def test_each_prompt_is_made_again(sessions_folder: Path, own_url: str, session_id: str) -> None:
    prompts = json.loads((sessions_folder / seeding.PROMPTS).read_text(encoding="utf-8"))
    with seeding.manager_on(own_url) as manager:
        source = DataSource(manager.config)
        calls = manager.model_calls(session_id)
        assert len(calls) == len(prompts[session_id]) > 5
        for call, prompt in zip(calls, prompts[session_id], strict=True):
            page = call_page(source, session_id, call.number, offset=0, limit=10_000)
            assert [_shown(slot) for slot in page["slots"]] == [_sent(message) for message in prompt]
        source.close()


def _shown(slot: dict[str, Any]) -> tuple[Any, ...]:
    calls = [(call["id"], call["name"], call["arguments"]) for call in slot["tool_calls"]]
    return slot["role"], slot["text"], calls, slot["tool_call_id"]


def _sent(message: dict[str, Any]) -> tuple[Any, ...]:
    made = [
        (call["id"], call["function"]["name"], call["function"]["arguments"]) for call in message.get("tool_calls", ())
    ]
    return message["role"], (message["content"] or "")[:20_000], made, message.get("tool_call_id")
