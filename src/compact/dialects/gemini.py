"""Gemini contents: turns of parts, where a turn of calls is followed by a turn with as many responses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from compact.core.messages.legality import Violation
from compact.core.messages.message import Message
from compact.dialects.dialect import (
    NATIVE,
    Block,
    Entry,
    foreign,
    is_summary,
    native_of,
    parts_with_words,
    with_words,
    without,
)
from compact.dialects.gemini_check import check_gemini as check_gemini
from compact.dialects.gemini_parts import (
    CALL_KEYS,
    RESPONSE_KEYS,
    Part,
    ReadContent,
    as_object,
    find_field,
    is_own_response,
    read_call,
    read_content,
    read_json_content,
    read_part,
    read_response,
    with_bytes,
    write_call_part,
    write_content,
    write_response,
)
from compact.dialects.turns import (
    CALL,
    CLOSING,
    EMPTY_CONTENT,
    OPAQUE,
    OPAQUE_BLOCK,
    OPENING,
    ORDER,
    PART,
    TurnPiece,
    arrange,
    assistant_entry,
    read_calls,
    write_call,
)

_EMPTY = {"parts": [{"text": EMPTY_CONTENT}]}
_ROLES = ("user", "model", "function", "tool", None)
_CONTENT_KEYS = ("text", "fileData", "file_data")


class GeminiDialect:
    """Contents as `client.models.generate_content(contents=...)` takes them: dicts, or `types.Content`."""

    name = "gemini"

    def recognises(self, item: object) -> bool | None:
        """Return True for messages with parts: nobody else has them but agent protocols whose parts name their kind."""
        if isinstance(item, Mapping):
            fields = cast(Mapping[str, Any], item)
            parts = fields.get("parts")
            if not isinstance(parts, list | tuple) or fields.get("role") not in _ROLES or "content" in fields:
                return False
            mappings = (cast(Mapping[str, Any], p) for p in cast(Sequence[object], parts) if isinstance(p, Mapping))
            return not any(part.keys() & {"type", "kind"} for part in mappings)
        is_content = hasattr(item, "parts") and hasattr(item, "role") and hasattr(item, "model_dump")
        return is_content and getattr(item, "role", "") in _ROLES

    def read(self, items: Sequence[Any], place: int) -> Iterator[Block]:
        """Yield a block for each content; neighbouring contents of responses are one, and read together."""
        reader = _ContentReader()
        for number, item in enumerate(items):
            content = read_json_content(item)
            is_content = not isinstance(item, Message) and self.recognises(item)
            if not is_content or not content.has_only_dicts:
                raise foreign(item, place + number, self.name)
            yield from reader.read(item, content)
        yield from reader.waiting

    def write(self, entries: Sequence[Entry]) -> Iterator[Block]:
        """Yield a content for each entry; `join` puts together what belongs together."""
        for entry in entries:
            native = native_of(entry)
            role, parts = _write_turn(entry)
            named = {} if native.get("no_role") else {"role": role}
            content = {**named, "parts": parts, **native.get("item", {})}
            yield Block((with_bytes(content) if native.get("as") == "bytes" else content,), (entry,))

    def join(self, blocks: Sequence[Block]) -> Sequence[Block]:
        """Make one turn of neighbours of one kind; begin with a turn of the user, and end with one behind a summary."""
        names = {call.id: call.name for block in blocks for entry in block.entries for call in read_calls(entry)}
        joined: list[Block] = []
        for block in (_with_function_name(_with_words(block), names) for block in blocks):
            if joined and block.items and joined[-1].items and _is_same_turn(joined[-1], block):
                joined[-1] = _merge(joined[-1], block)
            else:
                joined.append(block)
        if joined and joined[0].items and _role(joined[0].items[0]) == "model":
            joined.insert(0, _placeholder_turn(OPENING))
        has_summary = any(is_summary(entry) for block in joined for entry in block.entries)
        if has_summary and joined[-1].items and _role(joined[-1].items[-1]) == "model":
            joined.append(_placeholder_turn(CLOSING))
        if not any(native_of(entry).get("as") == "object" for block in joined for entry in block.entries):
            return joined
        like = next((item for block in joined for item in block.items if not isinstance(item, dict)), None)
        return [_with_objects(block, like) for block in joined]

    def check(self, items: Sequence[Any]) -> tuple[Violation, ...]:
        """Return everything the Gemini API would reject."""
        return check_gemini(items)


@dataclass(frozen=True, slots=True)
class _OpenCall:
    """A call that no response has answered yet."""

    id: str
    function: str


@dataclass(slots=True)
class _ContentReader:
    """Reads contents one after the other, and knows which call without an id is answered by which response."""

    waiting: list[Block] = field(default_factory=list[Block])
    _called: Counter[str] = field(default_factory=Counter[str])
    _answered: Counter[str] = field(default_factory=Counter[str])
    _open_calls: list[_OpenCall] = field(default_factory=list[_OpenCall])

    def read(self, item: Any, content: ReadContent) -> Iterator[Block]:
        """Read one more content; yield the blocks that are complete."""
        rest = without(content.fields, "role", "parts")
        native: dict[str, Any] = {"item": rest} if rest else {}
        native |= {"as": content.form} if content.form else {}
        native |= {} if content.fields.get("role") else {"no_role": True}
        if any(find_field(part, RESPONSE_KEYS) for part in content.parts):
            self._called.clear()
            yield from self._read_responses(item, content, native)
            return
        yield from self.waiting
        self._answered.clear()
        if content.fields.get("role") == "model":
            entry = self._read_model(content.parts, native)
        else:
            self._called.clear()
            self._open_calls.clear()
            entry = _user_entry(content, content.parts, native)
        self.waiting = [Block((item,), (entry,))]

    def _read_responses(self, item: Any, content: ReadContent, native: dict[str, Any]) -> Iterator[Block]:
        role = content.fields.get("role")
        native |= {"role": role} if role not in ("user", None) else {}
        entries: list[Entry] = []
        is_guessed = False
        for part in content.parts:
            named = find_field(part, RESPONSE_KEYS)
            if not named:
                continue
            call_id, was_guessed = self._call_id_for(named.value)
            is_guessed = is_guessed or was_guessed
            entry = read_response(part, call_id)
            entries.append({**entry, NATIVE: {**entry[NATIVE], **without(native, "item")}})
        others = [part for part in content.parts if not find_field(part, RESPONSE_KEYS)]
        if others:
            entries.append(_user_entry(content, others, {**native, "with_results": True}))
        elif "item" in native:
            entries[-1][NATIVE]["item"] = native["item"]
        block = Block((item,), tuple(entries))
        follows_result = self.waiting and self.waiting[-1].entries[-1].get("role") == "tool"
        if self.waiting and (follows_result or is_guessed):
            last = self.waiting.pop()
            block = Block((*last.items, *block.items), (*last.entries, *block.entries))
        yield from self.waiting
        self.waiting = [block]

    def _read_model(self, parts: Sequence[Part], native: dict[str, Any]) -> Entry:
        pieces: list[TurnPiece] = []
        extras: list[Any] = []
        for part in parts:
            named = find_field(part, CALL_KEYS)
            if named:
                name = named.value.get("name") or ""
                self._called[name] += not named.value.get("id")
                call, extra = read_call(part, f"{name}#{self._called[name]}")
                self._open_calls.append(_OpenCall(call.id, name))
                extras.append(extra)
                pieces.append(TurnPiece(CALL, write_call(call)))
            elif part.get("thought") or not any(key in part for key in _CONTENT_KEYS):
                pieces.append(TurnPiece(OPAQUE_BLOCK, part))
            else:
                pieces.append(TurnPiece(PART, read_part(part)))
        if any(extra != {"key": CALL_KEYS[0], "args": True} for extra in extras):
            native["calls"] = extras
        entry = assistant_entry(pieces, native)
        texts = [piece.value for piece in pieces if piece.kind == PART]
        if len(texts) == 1 and texts[0].keys() == {"type", "text"} and texts[0]["text"]:
            entry["content"] = texts[0]["text"]
        return entry

    def _call_id_for(self, response: Mapping[str, Any]) -> tuple[str, bool]:
        """Return the id of the call that a response answers; True if it has none although the call has one."""
        name, own = response.get("name") or "", response.get("id")
        self._answered[name] += not own
        wanted = own or f"{name}#{self._answered[name]}"
        known = [call.id for call in self._open_calls if call.function == name]
        is_guessed = wanted not in known and bool(known)
        if is_guessed:
            wanted = known[0]
        self._open_calls = [call for call in self._open_calls if call.id != wanted]
        return wanted, is_guessed


def _user_entry(content: ReadContent, parts: Sequence[Part], native: Mapping[str, Any]) -> Entry:
    role = content.fields.get("role")
    own = {**native, **({"role": role} if role not in ("user", None) else {})}
    # Content that is not there would be taken for a message that says nothing: so it is, and is made to say that.
    return {"role": "user", "content": read_content(parts), **({NATIVE: own} if own else {})}


def _write_turn(entry: Entry) -> tuple[str, list[Part]]:
    """Return the role and the parts of a turn."""
    native = native_of(entry)
    if entry["role"] == "tool":
        return native.get("role", "user"), [write_response(entry)]
    parts = write_content(entry["content"])
    # A result whose call is gone is said by the user, and so is the summary: the first turn is the user's.
    if entry["role"] != "assistant" or is_summary(entry) or "key" in native:
        return native.get("role", "user"), parts or [{"text": EMPTY_CONTENT}]
    extras = native.get("calls") or [{"args": True}] * len(entry.get("tool_calls") or ())
    written = zip(read_calls(entry), extras, strict=True)
    calls: list[Part] = [write_call_part(call, extra) for call, extra in written]
    arranged = arrange(native.get(ORDER, ""), parts, calls, native.get(OPAQUE, ()))
    return "model", arranged or [{"text": EMPTY_CONTENT}]


def _role(item: object) -> str:
    role = cast(Mapping[str, Any], item).get("role") if isinstance(item, Mapping) else getattr(item, "role", None)
    return "model" if role == "model" else "user"


def _placeholder_turn(text: str) -> Block:
    return Block(({"role": "user", "parts": [{"text": text}]},), ())


def _has_responses(item: object) -> bool:
    return any(find_field(part, RESPONSE_KEYS) for part in read_json_content(item).parts)


def _with_words(block: Block) -> Block:
    """Return a block without texts that say nothing; contents of the SDK that have some are dicts then."""
    if any(map(_has_silent_part, block.items)):
        block = Block(tuple(read_json_content(item).fields for item in block.items), block.entries)
    return with_words(block, _EMPTY)


def _has_silent_part(item: object) -> bool:
    """Return True for a content of the SDK with an empty text, or with no parts."""
    if isinstance(item, Mapping):
        return False
    parts: Sequence[object] = getattr(item, "parts", None) or ()
    texts = [getattr(part, "text", None) for part in parts]
    return not texts or any(isinstance(text, str) and not text.strip() for text in texts)


def _with_function_name(block: Block, names: Mapping[str, str]) -> Block:
    """Return the block of a response that was made up with the name of the function that was called."""
    entry = block.entries[0] if len(block.entries) == 1 else {}
    if entry.get("role") != "tool" or is_own_response(entry):
        return block
    part = write_response(entry, names.get(entry["tool_call_id"], ""))
    return Block(({"role": "user", "parts": [part]},), block.entries)


def _is_same_turn(first: Block, second: Block) -> bool:
    """Return True for neighbours that are one turn; responses stand alone, unless they came with other parts."""
    last, following = first.items[-1], second.items[0]
    if _role(last) != _role(following):
        return False
    after_responses, are_responses = _has_responses(last), _has_responses(following)
    came_together = bool(second.entries) and bool(native_of(second.entries[0]).get("with_results"))
    return after_responses == are_responses or (after_responses and came_together)


def _merge(first: Block, second: Block) -> Block:
    *before, last = first.items
    following, *after = second.items
    one, other = read_json_content(last), read_json_content(following)
    turn = {**other.fields, **one.fields, "parts": parts_with_words([*one.parts, *other.parts])}
    turn = with_bytes(turn) if "bytes" in (one.form, other.form) else turn
    return Block((*before, turn, *after), (*first.entries, *second.entries))


def _with_objects(block: Block, like: object) -> Block:
    if all(not isinstance(item, dict) for item in block.items):
        return block
    return Block(tuple(as_object(item, like) for item in block.items), block.entries)
