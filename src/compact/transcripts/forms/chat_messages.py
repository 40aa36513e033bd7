"""Chat Completions messages in exports, in their own form and as LangChain writes its messages."""

from __future__ import annotations

from compact.core.json_data import is_list, is_mapping
from compact.transcripts.builder import Call, LogBuilder
from compact.transcripts.forms.anthropic_blocks import add_message
from compact.transcripts.parts import Fields, content_of, list_of, mapping_of, text_field

_ROLES = {
    "human": "user",
    "ai": "assistant",
    "HumanMessage": "user",
    "AIMessage": "assistant",
    "AIMessageChunk": "assistant",
}
_OTHER_ROLES = {"SystemMessage": "system", "ToolMessage": "tool", "FunctionMessage": "tool", "function": "tool"}


def add_chat_message(log: LogBuilder, message: Fields, *, place: str) -> None:
    """Add one message of either form; content in Anthropic's blocks is read as such."""
    fields = _plain(message)
    role = _role(fields)
    if role == "tool":
        call_id = text_field(fields, "tool_call_id")
        return log.result(call_id, content_of(fields.get("content")), place=place)
    if _has_blocks(fields.get("content")):
        return add_message(log, {"role": role, "content": fields["content"]}, place=place)
    content = content_of(fields.get("content"))
    if role == "assistant":
        return log.answer(content, _calls(fields))
    if role in ("system", "developer", "user"):
        return log.say(role, content, name=text_field(fields, "name"))
    return log.note_unknown(f"role {role!r}", place)


def _plain(message: Fields) -> Fields:
    """Return the fields of a message: LangChain's are under `kwargs` or `data`, and its kind is beside them."""
    if is_mapping(message.get("kwargs")):
        identity = list_of(message.get("id"))
        return {"type": str(identity[-1]) if identity else "", **message["kwargs"]}
    if is_mapping(message.get("data")) and "type" in message:
        return {"type": message["type"], **message["data"]}
    return message


def _role(fields: Fields) -> str:
    role = text_field(fields, "role", "type")
    return _ROLES.get(role) or _OTHER_ROLES.get(role, role)


def _has_blocks(content: object) -> bool:
    kinds = {mapping_of(part).get("type") for part in content} if is_list(content) else set[object]()
    return bool(kinds & {"tool_use", "tool_result", "thinking"})


def _calls(fields: Fields) -> list[Call]:
    """Return the calls of an answer; those of LangChain have `args`, and may be in the provider's own form beside."""
    calls = list_of(fields.get("tool_calls")) or list_of(mapping_of(fields.get("additional_kwargs")).get("tool_calls"))
    return [_call(mapping_of(call)) for call in calls]


def _call(call: Fields) -> Call:
    inner = mapping_of(call.get("function") or call.get("custom")) or call
    arguments = inner.get("arguments", inner.get("args", inner.get("input", {})))
    return Call(text_field(call, "id"), text_field(inner, "name"), arguments)
