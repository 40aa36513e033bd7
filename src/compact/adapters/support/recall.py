"""The recall tool, by which an agent reads what left its prompt: its schema, and the answer to a call of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from compact.adapters.support.requests import report_failure
from compact.core.search.recall_answer import TOOL_NAME
from compact.manager import CompactManager
from compact.recall.tool import TOOL_SCHEMA, answer_tool_call
from compact.runner import run_blocking

RECALL_NAME = TOOL_NAME
RECALL_DESCRIPTION: str = TOOL_SCHEMA["function"]["description"]
RECALL_PARAMETERS: dict[str, Any] = TOOL_SCHEMA["function"]["parameters"]  # plain JSON schema


def answer_recall(
    manager: CompactManager,
    session: str | Callable[[], str],
    arguments: str | Mapping[str, Any],
    *,
    max_tokens: int | None = None,
) -> str:
    """Return the text that answers a call of the tool in a session, which may be a function that finds it out.

    A failure is reported, and the answer tells the agent of it.
    """
    limit: dict[str, Any] = {} if max_tokens is None else {"max_tokens": max_tokens}
    text = arguments if isinstance(arguments, str) else json.dumps(dict(arguments))
    session_id = RECALL_NAME  # in the report, if the session cannot be found out
    try:
        session_id = session() if callable(session) else session
        return answer_tool_call(lambda query: manager.recall(session_id, query, **limit), text)
    except Exception as error:  # noqa: BLE001 - a store or tokenizer may raise anything, and the agent must go on
        report_failure(manager, session_id, error, "the answer says so")
        return f"nothing can be read now: {error}"


async def aanswer_recall(
    manager: CompactManager,
    session: str | Callable[[], str],
    arguments: str | Mapping[str, Any],
    *,
    max_tokens: int | None = None,
) -> str:
    """Return what `answer_recall` returns, without blocking the event loop."""
    return await run_blocking(partial(answer_recall, manager, session, arguments, max_tokens=max_tokens))
