"""Walks nested data, and redacts each string in it and whatever sits under the name of a secret."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from compact.core.messages.message import Message
from compact.redaction.names import Kind, kind_of_name
from compact.redaction.shapes import SHORTEST_SHAPE
from compact.redaction.spans import MARK, may_name_secret
from compact.redaction.values import is_ordinary, looks_like_password, looks_random

TOO_DEEP = "<REDACTED: nested too deeply>"
UNREADABLE = "<REDACTED: unreadable object>"
_MAX_DEPTH = 100
_INDENT = re.compile(r"\s{0,8}[{\[]\r?\n( {1,8})\S")

# They say what may stand there, not what does; `default` and the like are values again.
_SCHEMA_WORDS = frozenset(
    {"$ref", "allOf", "anyOf", "deprecated", "description", "format", "items", "maxLength"}
    | {"minLength", "nullable", "oneOf", "pattern", "properties", "readOnly", "required", "title", "type"}
)
_SCHEMA_VALUES = frozenset({"const", "default", "enum", "example", "examples"})
# They link messages to one another and to the log; a mark in their place would break the link.
_LINKS = frozenset({"role", "id", "tool_call_id"})


class NestedRedaction:
    """One walk over one value; `redact` is what happens to a plain string."""

    def __init__(self, redact: Callable[[str], str], *, reads_everything: bool) -> None:
        self._redact = redact
        # With patterns or a callback of the user any leaf may matter: numbers, short names, strings without a hint.
        self._reads_everything = reads_everything
        self._open: set[int] = set()
        # A message has its text twice: as we read it, and as it came.
        self._strings: dict[str, str] = {}

    def value(self, value: Any) -> Any:
        """Return a redacted copy, or the same object if nothing in it is a secret."""
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            if not self._reads_everything and _is_short_word(value):
                return value
            clean = self._strings.get(value)
            if clean is None:
                clean = self._strings[value] = self.string(value)
            return value if clean == value else clean  # an equal text is not the same object
        if isinstance(value, int | float):
            return self._number(value)
        if id(value) in self._open or len(self._open) >= _MAX_DEPTH:
            return TOO_DEEP
        self._open.add(id(value))
        try:
            return self._container(value)
        finally:
            self._open.discard(id(value))

    def string(self, text: str) -> str:
        """Redact a string; if it is itself JSON, it stays JSON, and its names count."""
        if text.lstrip()[:1] in ("{", "[", '"') and self._may_hide(text):
            try:
                inner = json.loads(text, parse_float=_finite, object_pairs_hook=_whole)
            except (ValueError, RecursionError):
                return self._redact(text)
            clean = self.value(inner)
            if clean is inner:
                return text
            return _written_like(text, clean)
        return self._redact(text)

    def _may_hide(self, text: str) -> bool:
        return self._reads_everything or "\\" in text or may_name_secret(text) or self._redact(text) is not text

    def _number(self, value: float) -> Any:
        if not self._reads_everything:
            return value
        text = str(value)
        clean = self._redact(text)
        return value if clean == text else clean

    def _container(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return self._mapping(cast(Mapping[Any, Any], value))
        if isinstance(value, list | tuple):
            return self._sequence(cast("list[Any] | tuple[Any, ...]", value))
        if isinstance(value, set | frozenset):
            return _rebuilt(value, [self.value(item) for item in cast(Iterable[Any], value)])
        if isinstance(value, bytes | bytearray):
            text = bytes(value).decode("utf-8", "surrogateescape")
            clean = self.string(text)
            return value if clean == text else clean.encode("utf-8", "surrogateescape")
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return self._record(value)
        return self._opaque(value)

    def _mapping(self, value: Mapping[Any, Any]) -> Any:
        named = value.get("name", value.get("key"))
        is_named_pair = isinstance(named, str) and "value" in value and is_secret_name(named)
        secret_parts = _secret_parts(value)
        items: dict[Any, Any] = {}
        is_changed = False
        for key, item in value.items():
            name = self._key(key)
            if key in secret_parts:
                clean = _all_marked(item)
            else:
                clean = self.under(named if is_named_pair and key == "value" else key, item)
            is_changed = is_changed or clean is not item or name is not key
            items[name if name is key or name not in items else f"{name} ({len(items)})"] = clean
        return items if is_changed else value

    def _key(self, key: Any) -> Any:
        # The shortest shape has 20 characters, and nearly all keys are shorter.
        if isinstance(key, str) and (self._reads_everything or len(key) >= 16):
            clean = self._redact(key)
            return key if clean == key else clean
        return key

    def under(self, name: Any, item: Any) -> Any:
        """Redact a value under its name; under that of a secret it goes whole, unless it is a schema."""
        kind = kind_of_name(name) if isinstance(name, str) else Kind.NONE
        if kind is Kind.NONE or item is None or isinstance(item, bool) or _is_bare(item):
            return self.value(item)
        if kind is Kind.HINT:
            return MARK if isinstance(item, str) and _is_secret_under_hint(item) else self.value(item)
        if isinstance(item, Mapping) and _is_schema(cast(Mapping[Any, Any], item)):
            return self._schema(cast(Mapping[Any, Any], item))
        return MARK

    def _schema(self, schema: Mapping[Any, Any]) -> Any:
        clean = {
            word: MARK if word in _SCHEMA_VALUES and part and part != MARK else self.value(part)
            for word, part in schema.items()
        }
        return clean if any(clean[word] is not part for word, part in schema.items()) else schema

    def _sequence(self, value: list[Any] | tuple[Any, ...]) -> Any:
        items: list[Any] = []
        flag: str | None = None
        for item in value:
            # ["--password", "…"], as commands are written.
            items.append(self.under(flag, item) if flag and isinstance(item, str) else self.value(item))
            flag = item if isinstance(item, str) and item.startswith("-") and is_secret_name(item) else None
        return _rebuilt(value, items)

    def _record(self, value: Any) -> Any:
        kept = _LINKS if isinstance(value, Message) else frozenset[str]()
        changed = {
            field.name: clean
            for field in dataclasses.fields(value)
            if field.name not in kept
            and not _is_empty(item := getattr(value, field.name))
            and (clean := self.under(field.name, item)) is not item
        }
        if not changed:
            return value
        result = copy.copy(value)
        for name, clean in changed.items():
            object.__setattr__(result, name, clean)  # also on frozen ones: the copy is ours
        return result

    def _opaque(self, value: Any) -> Any:
        """Redact an object of another library: as its own dump if that holds a secret, else as it is."""
        try:
            dump = getattr(value, "model_dump", None)
            if callable(dump) and isinstance(dumped := dump(), Mapping):
                clean = self.value(dumped)
                return value if clean is dumped else clean
            text = str(value)
        except Exception:  # noqa: BLE001 - any object of the caller may be in a message
            return UNREADABLE
        clean = self.string(text)
        return value if clean == text else clean


def _secret_parts(value: Mapping[Any, Any]) -> tuple[str, ...]:
    """Return the parts of a mapping that are secret because of what it is: a Kubernetes secret, a Terraform state."""
    if value.get("kind") == "Secret":
        return ("data", "stringData")
    return ("attributes", "instances") if value.get("type") == "random_password" else ()


def _all_marked(part: Any) -> Any:
    if not isinstance(part, Mapping):
        return part if _is_bare(part) else MARK
    values = cast(Mapping[Any, Any], part)
    marked = {name: value if _is_bare(value) else MARK for name, value in values.items()}
    return values if marked == values else marked


def is_secret_name(name: str) -> bool:
    """Return True if whatever is under this name is a secret."""
    return kind_of_name(name) in (Kind.SURE, Kind.LIKELY)


def _is_bare(item: Any) -> bool:
    """Return True if there is nothing to hide in it: empty, or a mark."""
    if isinstance(item, str):
        return not item or item == MARK or item.startswith("<REDACTED: ")
    return isinstance(item, list | tuple | dict) and not item


def _is_empty(item: object) -> bool:
    """Return True for what has nothing in it; other objects may not want to be asked."""
    return item is None or (type(item) in (str, tuple, dict) and not item)


def _is_short_word(text: str) -> bool:
    """Return True for letters and digits alone, too few for a secret that is known by its look: most ids are."""
    return len(text) < SHORTEST_SHAPE and text.isascii() and text.isalnum()


def _is_secret_under_hint(item: str) -> bool:
    data = item.encode("utf-8", "surrogatepass")
    return not is_ordinary(data) and (looks_like_password(data) or looks_random(data))


def _is_schema(item: Mapping[Any, Any]) -> bool:
    return ("type" in item or "$ref" in item or "anyOf" in item) and set(item) <= _SCHEMA_WORDS | _SCHEMA_VALUES


def _rebuilt(value: Any, items: list[Any]) -> Any:
    """Return a container of the same kind, or the same one if no item changed."""
    if all(new is old for new, old in zip(items, value, strict=True)):
        return value
    make = getattr(value, "_make", None)  # a named tuple
    return make(items) if callable(make) else type(value)(items)


def _written_like(text: str, value: Any) -> str:
    """Return `value` as JSON, with the indent, the spaces and the escapes of `text`."""
    indented = _INDENT.match(text)
    return json.dumps(
        value,
        ensure_ascii="\\u" in text,
        indent=len(indented[1]) if indented else None,
        separators=None if '": ' in text else (",", ":"),
    )


def _whole(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON with all it holds: of a name that comes twice the first would be passed on unread."""
    fields = dict(pairs)
    if len(fields) == len(pairs):
        return fields
    fields = dict[str, Any]()
    for name, value in pairs:
        fields[name if name not in fields else f"{name} ({len(fields)})"] = value
    return fields


def _finite(literal: str) -> float | str:
    # 1e999 would be written back as `Infinity`, which is not JSON.
    number = float(literal)
    return number if math.isfinite(number) else literal
