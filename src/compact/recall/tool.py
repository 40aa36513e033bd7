"""A tool that an agent can call to read what left its prompt; every stub and summary names it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, cast

from compact.core.search.recall_answer import TOOL_NAME

# Chat Completions form; the parameters are plain JSON schema for every other framework.
TOOL_SCHEMA: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": TOOL_NAME,
        "description": (
            "Read earlier parts of this conversation that were cleared, summarised or moved out of your prompt. "
            "Give an id from a stub (such as m42 or art-…) for exactly that entry, or a question in plain words: "
            "names, paths and error codes are found exactly, other words in all their forms. The best match is first."
        ),
        "parameters": {
            "type": "object",
            "properties": {"query": {"type": "string", "description": "An id, or what you want to know."}},
            "required": ["query"],
            "additionalProperties": False,
        },
    },
}


def answer_tool_call(recall: Callable[[str], object], arguments: str) -> str:
    """Return what to send back for a call of the tool; a sentence, not an exception, for wrong arguments."""
    try:
        parsed: object = json.loads(arguments)
    except (ValueError, RecursionError):
        parsed = None
    query = cast(dict[str, object], parsed).get("query") if isinstance(parsed, dict) else None
    if not isinstance(query, str) or not query.strip():
        return 'call recall with {"query": "an id such as m42, or what you want to know"}'
    return str(recall(query))
