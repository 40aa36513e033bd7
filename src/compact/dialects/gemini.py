"""Gemini contents: turns of parts, where a turn of calls is followed by a turn with as many responses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from compact.core.log.legality import Violation
from compact.core.log.messages import Message
from compact.dialects.dialect import NATIVE, Block, Entry, foreign, without
from compact.dialects.gemini_check import check_gemini as check_gemini
from compact.dialects.gemini_parts import (
    CALL,
    RESPONSE,
    as_object,
    found,
    plain_content,
    read_call,
    read_content,
    read_part,
    read_response,
    with_bytes,
    write_call,
    write_content,
    write_response,
)
from compact.dialects.interleaving import (
    BESIDE,
    CLOSING,
    EMPTY_CONTENT,
    OPENING,
    ORDER,
    assistant_entry,
    call_of,
    calls_of,
    is_summary,
    lay_out,
    native_of,
)

_ROLES = ("user", "model", "function", "tool", None)
_CONTENT_KEYS = ("text", "fileData", "file_data")


class GeminiDialect:
    """Contents as `client.models.generate_content(contents=...)` takes them: dicts, or `types.Content`."""

    name = "gemini"

    def recognises(self, item: object) -> bool | None:
        """Nobody else has parts in a message, but some agent protocols whose parts name their kind."""
        if isinstance(item, Mapping):
            fields = cast(Mapping[str, Any], item)
            parts = fields.get("parts")
            if not isinstance(parts, list | tuple) or fields.get("role") not in _ROLES or "content" in fields:
                return False
            return not any(isinstance(part, Mapping) and part.keys() & {"type", "kind"} for part in parts)
        is_content = hasattr(item, "parts") and hasattr(item, "role") and hasattr(item, "model_dump")
        return is_content and getattr(item, "role", "") in _ROLES

    def read(self, items: Sequence[Any], place: int) -> Iterator[Block]:
        """Each content is a block; neighbouring contents of responses are one, and read together."""
        reader = _Reader()
        for number, item in enumerate(items):
            content, form = plain_content(item)
            is_content = not isinstance(item, Message) and self.recognises(item)
            if not is_content or not all(isinstance(part, dict) for part in content.get("parts") or ()):
                raise foreign(item, place + number, self.name)
            yield from reader.take(item, content, form)
        yield from reader.waiting

    def write(self, entries: Sequence[Entry]) -> Iterator[Block]:
        """Each entry as a content of its own; `join` puts together what belongs together."""
        for entry in entries:
            native = native_of(entry)
            role, parts = _write(entry)
            named = {} if native.get("no_role") else {"role": role}
            content = {**named, "parts": parts, **native.get("item", {})}
            yield Block((with_bytes(content) if native.get("as") == "bytes" else content,), (entry,))

    def join(self, blocks: Sequence[Block]) -> Sequence[Block]:
        """Neighbours of one kind become one turn, the first turn is the user's, and so is the one behind a summary."""
        names = {call_id: name for block in blocks for entry in block.entries for call_id, name, _ in calls_of(entry)}
        joined: list[Block] = []
        for block in (_named(block, names) for block in blocks):
            if joined and block.items and joined[-1].items and _belongs(joined[-1], block):
                joined[-1] = _merged(joined[-1], block)
            else:
                joined.append(block)
        if joined and joined[0].items and _role(joined[0].items[0]) == "model":
            joined.insert(0, _words(OPENING))
        has_summary = any(is_summary(entry) for block in joined for entry in block.entries)
        if has_summary and joined[-1].items and _role(joined[-1].items[-1]) == "model":
            joined.append(_words(CLOSING))
        if not any(native_of(entry).get("as") == "object" for block in joined for entry in block.entries):
            return joined
        like = next((item for block in joined for item in block.items if not isinstance(item, dict)), None)
        return [_with_objects(block, like) for block in joined]

    def check(self, items: Sequence[Any]) -> tuple[Violation, ...]:
        """Everything the Gemini API would reject."""
        return check_gemini(items)


@dataclass(slots=True)
class _Reader:
    """Reads contents one after the other, and knows which call without an id is answered by which response."""

    waiting: list[Block] = field(default_factory=list[Block])
    _called: Counter[str] = field(default_factory=Counter[str])
    _answered: Counter[str] = field(default_factory=Counter[str])
    _open: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def take(self, item: Any, content: dict[str, Any], form: str) -> Iterator[Block]:
        """One more content; blocks that are complete are given out."""
        rest = without(content, "role", "parts")
        native: dict[str, Any] = {"item": rest} if rest else {}
        native |= {"as": form} if form else {}
        native |= {} if content.get("role") else {"no_role": True}
        parts = content.get("parts") or []
        responses = [part for part in parts if found(part, RESPONSE)]
        if not responses:
            yield from self.waiting
            self.waiting = []
            self._answered.clear()
            if content.get("role") == "model":
                entry = self._read_model(parts, native)
            else:
                self._called.clear()
                self._open.clear()
                entry = _user_entry(content, parts, native)
            self.waiting = [Block((item,), (entry,))]
            return
        self._called.clear()
        yield from self._take_responses(item, content, native)

    def _take_responses(self, item: Any, content: dict[str, Any], native: dict[str, Any]) -> Iterator[Block]:
        role = content.get("role")
        native |= {"role": role} if role not in ("user", None) else {}
        parts = content["parts"]
        entries: list[Entry] = []
        is_odd = False
        for part in parts:
            named = found(part, RESPONSE)
            if not named:
                continue
            call_id, was_guessed = self._id_of(named[1])
            is_odd = is_odd or was_guessed
            entry = read_response(part, call_id)
            entries.append({**entry, NATIVE: {**entry[NATIVE], **without(native, "item")}})
        others = [part for part in parts if not found(part, RESPONSE)]
        if others:
            entries.append(_user_entry(content, others, {**native, "with_results": True}))
        elif "item" in native:
            entries[-1][NATIVE]["item"] = native["item"]
        block = Block((item,), tuple(entries))
        follows = self.waiting and self.waiting[-1].entries[-1].get("role") == "tool"
        if self.waiting and (follows or is_odd):
            last = self.waiting.pop()
            block = Block((*last.items, *block.items), (*last.entries, *block.entries))
        yield from self.waiting
        self.waiting = [block]

    def _read_model(self, parts: Sequence[dict[str, Any]], native: dict[str, Any]) -> Entry:
        pieces: list[tuple[str, Any]] = []
        extras: list[Any] = []
        for part in parts:
            named = found(part, CALL)
            if named:
                name = named[1].get("name") or ""
                self._called[name] += not named[1].get("id")
                call, extra = read_call(part, f"{name}#{self._called[name]}")
                self._open.append((call[0], name))
                extras.append(extra)
                pieces.append(("c", call_of(*call)))
            elif part.get("thought") or not any(key in part for key in _CONTENT_KEYS):
                pieces.append(("b", part))
            else:
                pieces.append(("p", read_part(part)))
        if any(extra != {"key": CALL[0], "args": True} for extra in extras):
            native["calls"] = extras
        entry = assistant_entry(pieces, native)
        texts = [piece for kind, piece in pieces if kind == "p"]
        if len(texts) == 1 and texts[0].keys() == {"type", "text"} and texts[0]["text"]:
            entry["content"] = texts[0]["text"]
        return entry

    def _id_of(self, response: Mapping[str, Any]) -> tuple[str, bool]:
        """The id of the call that a response answers; True if it has none although the call has one."""
        name, own = response.get("name") or "", response.get("id")
        self._answered[name] += not own
        wanted = own or f"{name}#{self._answered[name]}"
        known = [call_id for call_id, called in self._open if called == name]
        guessed = wanted not in known and bool(known)
        if guessed:
            wanted = known[0]
        self._open = [pair for pair in self._open if pair[0] != wanted]
        return wanted, guessed


def _user_entry(content: Mapping[str, Any], parts: Sequence[dict[str, Any]], native: Mapping[str, Any]) -> Entry:
    role = content.get("role")
    own = {**native, **({"role": role} if role not in ("user", None) else {})}
    # Content that is not there would be taken for a message that says nothing: so it is, and is made to say that.
    return {"role": "user", "content": read_content(parts), **({NATIVE: own} if own else {})}


def _write(entry: Entry) -> tuple[str, list[dict[str, Any]]]:
    native = native_of(entry)
    if entry["role"] == "tool":
        return native.get("role", "user"), [write_response(entry)]
    parts = write_content(entry["content"])
    # A result whose call is gone is told by the user, and so is the summary: the first turn is the user's.
    if entry["role"] != "assistant" or is_summary(entry) or "key" in native:
        return native.get("role", "user"), parts or [{"text": EMPTY_CONTENT}]
    extras = native.get("calls") or [{"args": True}] * len(entry.get("tool_calls") or ())
    calls = [write_call(*call, extra) for call, extra in zip(calls_of(entry), extras, strict=True)]
    laid = lay_out(native.get(ORDER, ""), parts, calls, native.get(BESIDE, ()))
    return "model", laid or [{"text": EMPTY_CONTENT}]


def _role(item: object) -> str:
    role = cast(Mapping[str, Any], item).get("role") if isinstance(item, Mapping) else getattr(item, "role", None)
    return "model" if role == "model" else "user"


def _words(text: str) -> Block:
    return Block(({"role": "user", "parts": [{"text": text}]},), ())


def _has_responses(item: object) -> bool:
    return any(found(part, RESPONSE) for part in plain_content(item)[0].get("parts") or ())


def _named(block: Block, names: Mapping[str, str]) -> Block:
    """A response that was made up has the name of its call."""
    entry = block.entries[0] if len(block.entries) == 1 else {}
    if entry.get("role") != "tool" or NATIVE in entry:
        return block
    part = write_response(entry, names.get(entry["tool_call_id"], ""))
    return Block(({"role": "user", "parts": [part]},), block.entries)


def _belongs(first: Block, second: Block) -> bool:
    """True for neighbours that are one turn; responses stand alone, unless they came with other parts."""
    last, following = first.items[-1], second.items[0]
    if _role(last) != _role(following):
        return False
    after_responses, are_responses = _has_responses(last), _has_responses(following)
    came_together = bool(second.entries) and bool(native_of(second.entries[0]).get("with_results"))
    return after_responses == are_responses or (after_responses and came_together)


def _merged(first: Block, second: Block) -> Block:
    *before, last = first.items
    following, *after = second.items
    (one, form), (other, other_form) = plain_content(last), plain_content(following)
    turn = {**other, **one, "parts": [*(one.get("parts") or ()), *(other.get("parts") or ())]}
    turn = with_bytes(turn) if "bytes" in (form, other_form) else turn
    return Block((*before, turn, *after), (*first.entries, *second.entries))


def _with_objects(block: Block, like: object) -> Block:
    if all(not isinstance(item, dict) for item in block.items):
        return block
    return Block(tuple(as_object(item, like) for item in block.items), block.entries)
