"""What a model made in one go, as one entry: reasoning, messages, calls, and the work of built-in tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from compact.core.log.legality import EMPTY_CONTENT
from compact.dialects.dialect import NATIVE, Entry, without
from compact.dialects.interleaving import (
    BESIDE,
    ORDER,
    assistant_entry,
    call_of,
    calls_of,
    native_of,
    read_object,
    write_json,
)

# Calls that the application answers, and where each has what it wants done; a text, or an object.
_PAYLOADS: Mapping[str, str] = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "computer_call": "action",
    "local_shell_call": "action",
    "shell_call": "action",
    "apply_patch_call": "operation",
}
# How an entry remembers its items, and what the content of a message was: a text, or so many parts.
_ITEMS = "items"
_FORM = "parts"
_CUT = "…"
_TEXT_PAYLOADS = ("function_call", "custom_tool_call")
OUTPUT_TYPES = frozenset(f"{kind}_output" for kind in _PAYLOADS)
ITEM_TYPES = (
    frozenset(_PAYLOADS)
    | OUTPUT_TYPES
    | {"reasoning", "item_reference", "compaction", "compaction_trigger", "configuration_update", "additional_tools"}
    | {"web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "tool_search_call"}
    | {"tool_search_output", "mcp_list_tools", "mcp_call", "mcp_approval_request", "mcp_approval_response"}
    | {"program", "program_output"}
)


def call_id_of(item: Mapping[str, Any]) -> str:
    """The id by which a call and its result belong together; nothing for items that need none."""
    kind = item.get("type")
    if kind not in _PAYLOADS and kind not in OUTPUT_TYPES and kind not in ("program", "program_output"):
        return ""
    # The shell's results name their call in either field.
    return str(item.get("call_id") or (item.get("id") if kind == "local_shell_call_output" else "") or "")


def is_call(item: Mapping[str, Any]) -> bool:
    """True for a call that the application answers."""
    return item.get("type") in _PAYLOADS and bool(call_id_of(item))


def is_output(item: Mapping[str, Any]) -> bool:
    """True for the result of a call that the application answers."""
    return (item.get("type") in OUTPUT_TYPES or item.get("type") == "program_output") and bool(call_id_of(item))


def read_run(items: Sequence[dict[str, Any]]) -> Entry:
    """One entry for all items; texts and calls are taken out of them, the rest is kept as it is."""
    if len(items) == 1 and items[0].keys() == {"role", "content"} and isinstance(items[0]["content"], str):
        return items[0]
    answered = {call_id_of(item) for item in items if is_output(item)}
    pieces: list[tuple[str, Any]] = []
    rest: list[Any] = []
    for item in items:
        if item.get("type", "message") == "message":
            parts = _parts_of(item["content"])
            pieces.extend(("p", part) for part in parts)
            form = "text" if isinstance(item["content"], str) else len(parts)
            rest.append({**without(item, "role", "content"), _FORM: form})
        elif is_call(item) and call_id_of(item) not in answered:
            pieces.append(("c", _read_call(item)))
            rest.append(without(item, "call_id", "name", _PAYLOADS[item["type"]]))
        else:
            pieces.append(("b", item))
            rest.append(None)
    entry = assistant_entry(pieces, {_ITEMS: rest})
    entry[NATIVE].pop(ORDER, None)  # the items tell it
    return entry


def _parts_of(content: str | list[Any]) -> list[Any]:
    return [{"type": "output_text", "text": content}] if isinstance(content, str) else content


def _read_call(item: Mapping[str, Any]) -> dict[str, Any]:
    payload = item.get(_PAYLOADS[item["type"]])
    arguments = payload if isinstance(payload, str) else write_json(payload)
    return call_of(call_id_of(item), item.get("name") or item["type"].removesuffix("_call"), arguments)


def write_run(entry: Entry) -> Iterator[dict[str, Any]]:
    """The items of a run, with the content and the arguments that the entry has now."""
    content, rest = entry.get("content"), native_of(entry).get(_ITEMS)
    if rest is None:
        yield from _write_plain(entry)
        return
    calls, beside = calls_of(entry), iter(native_of(entry).get(BESIDE, ()))
    texts = _texts(content, [form for one in rest if one and (form := one.get(_FORM)) is not None])
    if content and not any(one and _FORM in one for one in rest):
        yield {"role": "assistant", "content": content}
    for one in rest:
        if one is None:
            yield next(beside)
        elif _FORM in one:
            yield _write_message(one, next(texts))
        else:
            yield _write_call(one, *next(calls))


def _write_plain(entry: Entry) -> Iterator[dict[str, Any]]:
    """An entry that no items were made of: a summary, or what was said in another dialect."""
    calls = list(calls_of(entry))
    if entry.get("content") or not calls:
        yield {"role": "assistant", "content": entry.get("content") or EMPTY_CONTENT}
    for call in calls:
        yield _write_call({"type": "function_call"}, *call)


def _texts(content: Any, forms: Sequence[str | int]) -> Iterator[Any]:
    """What each message of a run says: its own parts, or if they were replaced, all of that in the first one."""
    lengths = [1 if form == "text" else cast(int, form) for form in forms]
    if isinstance(content, list | tuple) and len(cast(Sequence[Any], content)) == sum(lengths):
        parts = iter(cast(Sequence[Any], content))
        for form, length in zip(forms, lengths, strict=True):
            own = [next(parts) for _ in range(length)]
            yield own[0]["text"] if form == "text" else own
        return
    if not content:
        yield from ("" if form == "text" else [] for form in forms)
        return
    yield content
    yield from [_CUT] * (len(forms) - 1)


def _write_message(rest: Mapping[str, Any], content: Any) -> dict[str, Any]:
    if isinstance(content, str) and rest[_FORM] != "text" and "id" in rest:
        content = [{"type": "output_text", "text": content, "annotations": []}]
    return {"role": "assistant", "content": content, **without(rest, _FORM)}


def _write_call(rest: Mapping[str, Any], call_id: str, name: str, arguments: str) -> dict[str, Any]:
    kind = rest["type"]
    if kind in _TEXT_PAYLOADS:
        return {**rest, "call_id": call_id, "name": name, _PAYLOADS[kind]: arguments}
    return {**rest, "call_id": call_id, _PAYLOADS[kind]: read_object(arguments)}
