"""Items of OpenAI's Responses API, which Codex and stored responses have."""

from __future__ import annotations

from compact.core.json_data import is_mapping
from compact.transcripts.builder import Call, LogBuilder
from compact.transcripts.parts import Content, Fields, content_of, text_field

_RESULTS = frozenset(
    {"function_call_output", "custom_tool_call_output", "local_shell_call_output", "tool_search_output"}
    | {"computer_call_output", "shell_call_output", "apply_patch_call_output"}
)
_CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call", "tool_search_call"}) | frozenset(
    {"computer_call", "shell_call", "apply_patch_call"}
)
# Calls that the provider answers itself: there is no result of the agent's.
_HOSTED = frozenset({"web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call"})
_SILENT = frozenset({"ghost_snapshot", "compaction", "compaction_summary", "context_compaction", "additional_tools"})
ITEM_TYPES = _RESULTS | _CALLS | _HOSTED | _SILENT | {"message", "reasoning", "agent_message"}
# One answer of the model is several items.
_ANSWER = "answer"


def add_item(log: LogBuilder, item: Fields, *, place: str, name: str = "") -> None:
    """Add one item; neighbours of the same answer become one message."""
    kind = item.get("type", "message")
    if kind == "message" or kind == "agent_message":
        _add_message(log, item, name)
    elif kind == "reasoning":
        log.thinking += 1
    elif kind in _CALLS:
        log.answer(None, [_call(item)], key=_ANSWER)
    elif kind in _RESULTS:
        log.result(text_field(item, "call_id"), _output(item), place=place)
        log.end_answer()
    elif kind in _HOSTED:
        log.answer(f"[{kind}] {text_field(_action(item), 'query', 'url')}".rstrip(), key=_ANSWER)
    elif kind not in _SILENT:
        log.note_unknown(f"item {kind!r}", place)


def _add_message(log: LogBuilder, item: Fields, name: str) -> None:
    role, content = item.get("role", "user"), content_of(item.get("content"))
    if role == "assistant":
        log.answer(content, key=_ANSWER)
    else:
        log.say(role if role in ("system", "developer") else "user", content, name=name)


def _call(item: Fields) -> Call:
    arguments: object = item.get("arguments", item.get("input", item.get("action", {})))
    if item.get("type") == "custom_tool_call":
        arguments = {"input": arguments}
    name = text_field(item, "name") or str(item["type"]).removesuffix("_call")
    return Call(text_field(item, "call_id", "id"), name, arguments)


def _action(item: Fields) -> Fields:
    action = item.get("action")
    return action if is_mapping(action) else item


def _output(item: Fields) -> Content:
    output = item.get("output", item.get("tools"))
    # Early versions wrote the text and a mark of success as an object.
    return content_of(output["content"]) if is_mapping(output) and "content" in output else content_of(output)
