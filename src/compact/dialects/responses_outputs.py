"""Results of calls in the Responses dialect: texts, parts, the output of shells, screenshots."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from compact.dialects.dialect import NATIVE, Entry, without
from compact.dialects.interleaving import native_of
from compact.dialects.responses_runs import call_id_of

# The smallest image there is: a screenshot that was cleared must still be one.
NO_SCREENSHOT = (
    "data:image/png;base64,"
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
_OUTPUT = "output"
_SHELL = "shell_call_output"
_SCREEN = "computer_call_output"


def read_output(item: dict[str, Any]) -> Entry:
    """A result; what it says is its content, the rest is kept as it is."""
    key = _key(item["type"])
    output, rest = item.get(key), without(item, "call_id", key)
    match output:
        case str():
            content: Any = output
        case list() if output:
            content, rest[_OUTPUT] = [_read_part(part, item["type"]) for part in cast(list[Any], output)], "parts"
        case dict():
            content, rest[_OUTPUT] = [output], "part"
        case _:
            content, rest[_OUTPUT] = "", {"value": output} if key in item else "none"
    if "call_id" not in item:
        rest["call_key"] = "id"
        rest.pop("id")
    return {"role": "tool", "tool_call_id": call_id_of(item), "content": content, NATIVE: rest}


def write_output(entry: Entry) -> Iterator[dict[str, Any]]:
    """The result as an item; words that its kind has no place for stand behind it."""
    native = {"type": "function_call_output", **native_of(entry)}
    kind, content = native["type"], entry["content"]
    call = {native.get("call_key", "call_id"): entry["tool_call_id"]}
    item = {**without(native, _OUTPUT, "call_key"), **call}
    output = _write(kind, content, native.get(_OUTPUT))
    yield {**item, **output}
    if kind == _SCREEN and isinstance(content, str):
        yield {"role": "user", "content": content}


def _key(kind: str) -> str:
    return "result" if kind == "program_output" else _OUTPUT


def _read_part(part: Any, kind: str) -> Any:
    """A part; what a shell printed is text like any other."""
    if kind != _SHELL or not isinstance(part, dict):
        return part
    fields = cast(dict[str, Any], part)
    return {"type": "shell_output", "text": fields.get("stdout", ""), **without(fields, "stdout")}


def _write(kind: str, content: Any, form: Any) -> dict[str, Any]:
    key = _key(kind)
    if content == "" and form == "none":
        return {}
    if content == "" and isinstance(form, Mapping):
        return {key: form["value"]}
    if isinstance(content, str):
        return {key: _write_text(kind, content)}
    parts = [_write_part(part, kind) for part in cast(Sequence[Any], content)]
    return {key: parts[0] if form == "part" and len(parts) == 1 else parts}


def _write_text(kind: str, text: str) -> Any:
    """A text that stands for what was there."""
    if kind == _SHELL:
        return [{"stdout": text, "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]
    if kind == _SCREEN:
        return {"type": "computer_screenshot", "image_url": NO_SCREENSHOT}
    return text


def _write_part(part: Any, kind: str) -> Any:
    if kind != _SHELL or not isinstance(part, dict) or part.get("type") != "shell_output":
        return part
    fields = cast(dict[str, Any], part)
    return {"stdout": fields["text"], **without(fields, "type", "text")}
