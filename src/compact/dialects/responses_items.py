"""Items of the Responses dialect as entries: what the model made in one go, and the results of its calls.

Reasoning, messages, calls and the work of built-in tools that follow each other are one entry; a result (a text, parts,
what a shell printed, a screenshot) is one of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias, cast

from compact.core.messages.legality import EMPTY_CONTENT
from compact.dialects.dialect import NATIVE, Entry, fields_of, native_of, without
from compact.dialects.turns import (
    CALL,
    OPAQUE,
    OPAQUE_BLOCK,
    ORDER,
    PART,
    FunctionCall,
    TurnPiece,
    assistant_entry,
    read_calls,
    read_object,
    write_call,
    write_json,
)

Item: TypeAlias = dict[str, Any]
# Calls that the application answers, and where each has what it wants done; a text, or an object.
_PAYLOADS: Mapping[str, str] = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "computer_call": "action",
    "local_shell_call": "action",
    "shell_call": "action",
    "apply_patch_call": "operation",
}
REFERENCE = "item_reference"
_TEXT_PAYLOADS = ("function_call", "custom_tool_call")
OUTPUT_TYPES = frozenset(f"{kind}_output" for kind in _PAYLOADS)
ITEM_TYPES = (
    frozenset(_PAYLOADS)
    | OUTPUT_TYPES
    | {"reasoning", REFERENCE, "compaction", "compaction_trigger", "configuration_update", "additional_tools"}
    | {"web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "tool_search_call"}
    | {"tool_search_output", "mcp_list_tools", "mcp_call", "mcp_approval_request", "mcp_approval_response"}
    | {"program", "program_output"}
)
# Under these names an entry keeps its items, and what the content of each message was: a text, or so many parts.
_ITEMS = "items"
_FORM = "parts"
# What stands in the other messages of a run whose text was replaced: all of the new text is in the first.
_REPLACED = "…"
# Under this name the entry of a result keeps the form that its output had.
_OUTPUT = "output"
_SHELL = "shell_call_output"
_SCREEN = "computer_call_output"
# The smallest image there is: a screenshot that was cleared must still be one.
NO_SCREENSHOT = (
    "data:image/png;base64,"
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def call_id_of(item: Mapping[str, Any]) -> str:
    """Return the id by which a call and its result belong together; "" for items that need none."""
    kind = _type_of(item)
    if kind not in _PAYLOADS and kind not in OUTPUT_TYPES and kind not in ("program", "program_output"):
        return ""
    # The shell's results name their call in either field.
    return str(item.get("call_id") or (item.get("id") if kind == "local_shell_call_output" else "") or "")


def is_call(item: Mapping[str, Any]) -> bool:
    """Return True for a call that the application answers."""
    return _type_of(item) in _PAYLOADS and bool(call_id_of(item))


def is_output(item: Mapping[str, Any]) -> bool:
    """Return True for the result of a call that the application answers."""
    return (_type_of(item) in OUTPUT_TYPES or _type_of(item) == "program_output") and bool(call_id_of(item))


def is_reference(item: Mapping[str, Any]) -> bool:
    """Return True for what stands for an item that the provider keeps: of its kind nothing is known but its id."""
    return _type_of(item) == REFERENCE


def _type_of(item: Mapping[str, Any]) -> str:
    kind = item.get("type")
    return kind if isinstance(kind, str) else ""


# -- what the model made in one go ------------------------------------------------------------------------------------


def read_run_with_references(items: Sequence[Item], behind: Sequence[Item], following: Sequence[Item]) -> Entry:
    """Return the entry of a run in which references stand for calls, or for results.

    `behind` has the results before the model's next item, `following` what comes then.
    A result whose call is not in the list answers a reference; a call whose result is nowhere has it in a reference.
    """
    called = {call_id_of(item) for item in items if not is_output(item)}
    outputs = [item for item in behind if is_output(item)]
    references = [item for item in items if is_reference(item)]
    # Ids begin with the kind of their item: reasoning and messages are no calls.
    references.sort(key=lambda item: str(item.get("id")).startswith(("rs_", "msg_")))
    strays = [call_id_of(output) for output in outputs if call_id_of(output) not in called]
    stands_for = {id(item): call_id for item, call_id in zip(references, dict.fromkeys(strays), strict=False)}
    answered = {call_id_of(item) for item in (*items, *behind, *following) if is_output(item)}
    left = [place for place, item in enumerate(items) if is_reference(item) and id(item) not in stands_for]
    served: set[str] = set()
    for place, item in enumerate(items):
        reference = next((other for other in left if other > place), None)
        if is_call(item) and call_id_of(item) not in answered and reference is not None:
            served.add(call_id_of(item))
            left.remove(reference)
    return read_run(items, stands_for=stands_for, served=served)


def read_run(
    items: Sequence[Item], *, stands_for: Mapping[int, str] = MappingProxyType({}), served: Collection[str] = ()
) -> Entry:
    """Return one entry for all items; texts and calls are taken out of them, the rest is kept as it is.

    `stands_for` has the call ids of references that are calls, by the id of the object; the calls in `served` have
    their results among the items.
    """
    if len(items) == 1 and items[0].keys() == {"role", "content"} and isinstance(items[0]["content"], str):
        return items[0]
    answered = {call_id_of(item) for item in items if is_output(item)} | set(served)
    pieces: list[TurnPiece] = []
    rest: list[Item | None] = []
    for item in items:
        if item.get("type", "message") == "message":
            parts = _parts_of(item["content"])
            pieces.extend(TurnPiece(PART, part) for part in parts)
            form = "text" if isinstance(item["content"], str) else len(parts)
            rest.append({**without(item, "role", "content"), _FORM: form})
        elif id(item) in stands_for:
            pieces.append(TurnPiece(CALL, write_call(FunctionCall(stands_for[id(item)], REFERENCE, ""))))
            rest.append(dict(item))
        elif is_call(item) and call_id_of(item) not in answered:
            pieces.append(TurnPiece(CALL, _read_call(item)))
            rest.append(without(item, "call_id", "name", _PAYLOADS[item["type"]]))
        else:
            pieces.append(TurnPiece(OPAQUE_BLOCK, item))
            rest.append(None)
    entry = assistant_entry(pieces, {_ITEMS: rest})
    entry[NATIVE].pop(ORDER, None)  # the items have it
    return entry


def _parts_of(content: str | list[Any]) -> list[Any]:
    return [{"type": "output_text", "text": content}] if isinstance(content, str) else content


def _read_call(item: Mapping[str, Any]) -> Item:
    payload = item.get(_PAYLOADS[item["type"]])
    arguments = payload if isinstance(payload, str) else write_json(payload)
    return write_call(FunctionCall(call_id_of(item), item.get("name") or item["type"].removesuffix("_call"), arguments))


def write_run(entry: Entry) -> Iterator[Item]:
    """Yield the items of an entry, with the content and the arguments that it has now."""
    content = entry.get("content")
    rest: Sequence[Item | None] | None = native_of(entry).get(_ITEMS)
    if rest is None:
        yield from _write_without_items(entry)
        return
    calls, opaque = read_calls(entry), iter(native_of(entry).get(OPAQUE, ()))
    texts = _message_contents(content, [one[_FORM] for one in rest if one and one.get(_FORM) is not None])
    if content and not any(one and _FORM in one for one in rest):
        yield {"role": "assistant", "content": content}
    for one in rest:
        if one is None:
            yield next(opaque)
        elif _FORM in one:
            yield _write_message(one, next(texts))
        else:
            yield _write_call(one, next(calls))


def _write_without_items(entry: Entry) -> Iterator[Item]:
    """Yield the items of an entry that was not made of items: a summary, or what was said in another dialect."""
    calls = list(read_calls(entry))
    content: Any = entry.get("content")
    if content or not calls:
        yield {"role": "assistant", "content": content if content or content == "" else EMPTY_CONTENT}
    for call in calls:
        yield _write_call({"type": "function_call"}, call)


def _message_contents(content: Any, forms: Sequence[str | int]) -> Iterator[Any]:
    """Yield the content of each message of a run: its own parts, or if they were replaced, all in the first one."""
    lengths = [1 if isinstance(form, str) else form for form in forms]
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
    yield from [_REPLACED] * (len(forms) - 1)


def _write_message(rest: Mapping[str, Any], content: Any) -> Item:
    if isinstance(content, str) and rest[_FORM] != "text" and "id" in rest:
        content = [{"type": "output_text", "text": content, "annotations": []}]
    return {"role": "assistant", "content": content, **without(rest, _FORM)}


def _write_call(rest: Mapping[str, Any], call: FunctionCall) -> Item:
    kind = rest["type"]
    if kind == REFERENCE:
        return dict(rest)
    if kind in _TEXT_PAYLOADS:
        return {**rest, "call_id": call.id, "name": call.name, _PAYLOADS[kind]: call.arguments}
    return {**rest, "call_id": call.id, _PAYLOADS[kind]: read_object(call.arguments)}


# -- results ----------------------------------------------------------------------------------------------------------


def read_output(item: Item) -> Entry:
    """Return the entry of a result; what it says is its content, the rest is kept as it is."""
    key = _output_key(item["type"])
    output, rest = item.get(key), without(item, "call_id", key)
    match output:
        case str():
            content: Any = output
        case list() if output:
            parts = cast(Sequence[Any], output)
            content, rest[_OUTPUT] = [_read_part(part, item["type"]) for part in parts], "parts"
        case dict():
            content, rest[_OUTPUT] = [cast(Item, output)], "part"
        case _:
            content, rest[_OUTPUT] = "", {"value": output} if key in item else "none"
    if "call_id" not in item:
        rest["call_key"] = "id"
        rest.pop("id")
    return {"role": "tool", "tool_call_id": call_id_of(item), "content": content, NATIVE: rest}


def write_output(entry: Entry) -> Iterator[Item]:
    """Yield the result as an item; words that its kind has no place for stand behind it."""
    # A session may have been in another dialect before: what that has kept of a result is not of such a type.
    is_own = str(native_of(entry).get("type")).endswith("_output")
    native = native_of(entry) if is_own else {"type": "function_call_output"}
    kind, content = native["type"], entry["content"]
    call = {native.get("call_key", "call_id"): entry["tool_call_id"]}
    item = {**without(native, _OUTPUT, "call_key"), **call}
    yield {**item, **_write_content(kind, content, native.get(_OUTPUT))}
    if kind == _SCREEN and isinstance(content, str):
        yield {"role": "user", "content": content}


def _output_key(kind: str) -> str:
    return "result" if kind == "program_output" else "output"


def _read_part(part: Any, kind: str) -> Any:
    """Return a part; what a shell printed is text like any other."""
    if kind != _SHELL or not isinstance(part, dict):
        return part
    fields = cast(Item, part)
    return {"type": "shell_output", "text": fields.get("stdout", ""), **without(fields, "stdout")}


def _write_content(kind: str, content: Any, form: Any) -> Item:
    key = _output_key(kind)
    if content == "" and form == "none":
        return {}
    if content == "" and isinstance(form, Mapping):
        return {key: form["value"]}
    if isinstance(content, str):
        return {key: _write_text(kind, content)}
    parts = [_write_part(part, kind) for part in cast(Sequence[Any], content)]
    return {key: parts[0] if form == "part" and len(parts) == 1 else parts}


def _write_text(kind: str, text: str) -> Any:
    """Return a text that stands for what was there, in the form that this kind of result has."""
    if kind == _SHELL:
        return [{"stdout": text, "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]
    if kind == _SCREEN:
        return {"type": "computer_screenshot", "image_url": NO_SCREENSHOT}
    return text


def _write_part(part: Any, kind: str) -> Any:
    fields = fields_of(cast(object, part))
    if kind != _SHELL or fields.get("type") != "shell_output":
        return part
    return {"stdout": fields["text"], **without(fields, "type", "text")}
