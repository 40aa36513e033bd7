"""Messages of Ollama as entries, and entries as messages.

Every message is one entry. Calls need no ids there, and results no names: what belongs together is known by its order.
In the log the calls of a message are numbered, and so are the results right behind it, which are read together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from compact.core.json_data import is_list, is_mapping
from compact.core.messages.legality import Violation
from compact.dialects.dialect import NATIVE, Block, Entry, foreign, native_of, without
from compact.dialects.ollama.check import ROLES, check_ollama
from compact.dialects.turns import OPAQUE, FunctionCall, read_calls, read_object, write_call, write_json

# Under these names an entry keeps the other fields of its message, those of its calls, and how its text was left out.
_ITEM, _CALLS, _NO_TEXT = "item", "calls", "no_text"
# How the base64 text of an image begins, by its type.
_IMAGE_STARTS = {"/9j/": "jpeg", "R0lGOD": "gif", "UklGR": "webp"}


class OllamaDialect:
    """Messages as `POST /api/chat` takes them."""

    name = "ollama"

    def recognises(self, item: object) -> bool | None:
        """Return None for what it can read: users of Chat Completions have such messages, too, so it must be named."""
        if not is_mapping(item) or item.get("role") not in ROLES or "parts" in item or "type" in item:
            return False
        if not isinstance(item.get("content", ""), str | None):
            return False
        calls: object = item.get("tool_calls") or []
        return None if is_list(calls) and all(map(_is_call, calls)) else False

    def read(self, items: Sequence[Any], place: int) -> Iterator[Block]:
        """Yield a block for each message, and one for neighbouring results: only all of them tell their numbers."""
        results: list[Any] = []
        for number, item in enumerate(items, place):
            if self.recognises(item) is False:
                hint = "content is a text, and the arguments of a call are an object"
                raise foreign(item, number, self.name, hint=hint)
            if item["role"] == "tool":
                results.append(item)
                continue
            if results:
                yield _read_results(results)
                results = []
            yield Block((item,), (_read(item),))
        if results:
            yield _read_results(results)

    def write(self, entries: Sequence[Entry]) -> Iterator[Block]:
        """Yield a message for each entry."""
        for entry in entries:
            yield Block((_write_message(entry),), (entry,))

    def join(self, blocks: Sequence[Block]) -> Sequence[Block]:
        """Return the messages as they are; neighbouring results are one block, as they are when they are read again."""
        joined: list[Block] = []
        for block in blocks:
            if joined and _has_results(joined[-1]) and _has_results(block):
                before = joined.pop()
                block = Block((*before.items, *block.items), (*before.entries, *block.entries))
            joined.append(block)
        return joined

    def check(self, items: Sequence[Any]) -> tuple[Violation, ...]:
        """Return everything that Ollama would reject, or take for something else."""
        return check_ollama(items)


def _has_results(block: Block) -> bool:
    return all(item["role"] == "tool" for item in block.items)


def _is_call(call: object) -> bool:
    function = call.get("function") if is_mapping(call) else None
    return is_mapping(function) and is_mapping(function.get("arguments", {}))


# -- messages to entries ----------------------------------------------------------------------------------------------


def _numbered(number: int) -> str:
    """Return the id that a call, and its result, has in the log."""
    return f"call#{number}"


def _read_results(items: Sequence[Mapping[str, Any]]) -> Block:
    entries: list[Entry] = [
        {
            "role": "tool",
            "tool_call_id": _numbered(number),
            "content": _read_content(item),
            NATIVE: _native(item, "role", "content", "images"),
        }
        for number, item in enumerate(items, 1)
    ]
    return Block(tuple(items), tuple(entries))


def _read(item: Mapping[str, Any]) -> Entry:
    thinking = item.get("thinking")
    native = _native(item, "role", "content", "images", "tool_calls", *(["thinking"] if thinking else []))
    if thinking:
        native[OPAQUE] = [{"type": "thinking", "thinking": thinking}]
    entry: Entry = {"role": item["role"], "content": _read_content(item)}
    calls: Sequence[Any] = item.get("tool_calls") or ()
    if calls:
        entry["tool_calls"], extras = _read_calls(calls)
        entry["content"] = entry["content"] or None
        native |= {_CALLS: extras} if any(extras) else {}
    return {**entry, NATIVE: native} if native else entry


def _native(item: Mapping[str, Any], *read: str) -> dict[str, Any]:
    rest = without(item, *read)
    native: dict[str, Any] = {_ITEM: rest} if rest else {}
    if not item.get("content") and item.get("content", "missing") != "":
        native[_NO_TEXT] = "null" if "content" in item else "missing"
    return native


def _read_content(item: Mapping[str, Any]) -> Any:
    text, images = item.get("content") or "", item.get("images")
    if not is_list(images):
        return text
    parts: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    return [*parts, *({"type": "image_url", "image_url": {"url": _data_url(str(image))}} for image in images)]


def _data_url(image: str) -> str:
    kind = next((kind for start, kind in _IMAGE_STARTS.items() if image.startswith(start)), "png")
    return f"data:image/{kind};base64,{image}"


def _read_calls(calls: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Return the calls of an entry, and whatever else each of them has."""
    written: list[Any] = []
    extras: list[dict[str, Any]] = []
    for number, call in enumerate(calls, 1):
        function = call["function"]
        arguments = write_json(function.get("arguments") or {})
        written.append(write_call(FunctionCall(_numbered(number), str(function.get("name") or ""), arguments)))
        call_rest, rest = without(call, "function"), without(function, "name", "arguments")
        extra = {"call": call_rest, "function": rest, "bare": "arguments" not in function}
        extras.append({key: value for key, value in extra.items() if value})
    return written, extras


# -- entries to messages ----------------------------------------------------------------------------------------------


def _write_message(entry: Entry) -> dict[str, Any]:
    native = native_of(entry)
    text, images = _write_content(entry.get("content"))
    item: dict[str, Any] = {"role": entry["role"], **_write_text(text, native.get(_NO_TEXT)), **native.get(_ITEM, {})}
    item |= {"images": images} if images else {}
    # A session may have been in another dialect before, whose opaque parts are others.
    thoughts = [part["thinking"] for part in native.get(OPAQUE, ()) if "thinking" in part]
    item |= {"thinking": thoughts[0]} if thoughts else {}
    calls = list(read_calls(entry))
    if calls:
        extras: Sequence[Mapping[str, Any]] = native.get(_CALLS) or [{} for _ in calls]
        item["tool_calls"] = [_write_call(call, extra) for call, extra in zip(calls, extras, strict=True)]
    # A result whose call is gone is said by somebody else, without the marks of a result.
    return item if entry["role"] == "tool" else without(item, "tool_name", "tool_call_id")


def _write_text(text: str, left_out: str | None) -> dict[str, Any]:
    if text or left_out is None:
        return {"content": text}
    return {"content": None} if left_out == "null" else {}


def _write_content(content: Any) -> tuple[str, list[str]]:
    if content is None or isinstance(content, str):
        return content or "", []
    texts = [part["text"] for part in content if part.get("type") == "text"]
    urls = [part["image_url"]["url"] for part in content if part.get("type") == "image_url"]
    return "\n".join(texts), [url.partition("base64,")[2] for url in urls]


def _write_call(call: FunctionCall, extra: Mapping[str, Any]) -> dict[str, Any]:
    arguments = read_object(call.arguments)
    given = {} if extra.get("bare") and not arguments else {"arguments": arguments}
    function = {"name": call.name, **given, **extra.get("function", {})}
    return {"function": function, **extra.get("call", {})}
