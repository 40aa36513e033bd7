"""Whatever a caller has in hand as a message: objects of client libraries and frameworks, read as plain data.

No client library is imported here: objects are known by their fields, and by the package of their class.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass, replace
from datetime import datetime, timedelta
from enum import Enum
from functools import cache, lru_cache
from importlib import import_module
from itertools import chain
from operator import attrgetter
from typing import Any, Generic, TypeAlias, TypeVar, cast

from compact.core.errors import InvalidHistory
from compact.core.json_data import is_list, is_mapping
from compact.core.messages.entries import too_deep
from compact.core.messages.message import Message, SettledItems, copy_plain, list_start
from compact.dialects.dialect import Dialect, as_json_data, is_of

T = TypeVar("T")

# Frameworks whose message objects have a dialect of their own: the package of the messages, and where the dialect is.
_FRAMEWORKS: Mapping[str, tuple[str, str]] = {
    "langchain_core.messages": ("compact.adapters.langchain.messages", "LangChainDialect"),
}
# What has one of these fields and no role is an answer with a message in it, and this is where the message is.
_ANSWERS: tuple[tuple[str, str], ...] = (
    ("choices", "append its message: response.choices[0].message"),
    ("candidates", "append its content: response.candidates[0].content"),
    ("output", "add what is in it: messages += response.output"),
    ("message", "append the message that is in it: .message"),
    ("delta", "this is a piece of a stream: append the message once the stream is complete"),
    ("messages", "add the messages that are in it: messages += result.messages"),
)
_CONVERSE_ANSWER = 'append its message: response["output"]["message"]'
_UI_MESSAGE = "this is a UIMessage of the Vercel AI SDK: pass what convertToModelMessages(messages) returns"
_A_DICT = 'pass a dict such as {"role": "user", "content": "…"}'


@dataclass(frozen=True)
class PlainItems(Generic[T]):
    """A caller's items as plain data, and the way back to its own objects."""

    own: list[T]
    plain: list[Any]

    @classmethod
    def read(cls, items: Sequence[T], dump: Callable[[T], Any]) -> PlainItems[T]:
        """Return items with what `dump` makes of each."""
        own = list(items)  # the caller goes on with its list
        return cls(own, list(map(dump, own)))

    def restore(self, sent: Sequence[Any], build: Callable[[Any], T] | None = None) -> list[T]:
        """Return the caller's own object for data that was not changed, and what `build` makes of all other."""
        own = {id(data): item for data, item in zip(self.plain, self.own, strict=True)}
        restored: list[T] = []
        for data in sent:
            if id(data) in own:
                restored.append(own[id(data)])
            else:
                restored.append(build(data) if build else cast(T, data))
        return restored


# -- what a caller's list looked like ---------------------------------------------------------------------------------

# Reads, in C, what an object of a Python class holds: all of its fields, or what a model of Pydantic has besides.
_Reader: TypeAlias = Callable[[Any], Any]
_MODEL_SLOT = "__pydantic_extra__"
_FIELDS: tuple[_Reader, ...] = (vars,)
_MODEL_FIELDS: tuple[_Reader, ...] = (vars, attrgetter(_MODEL_SLOT))
_POINTER_BYTES = object.__basicsize__ // 2
_UNCHANGEABLE = (str, int, float, bytes, datetime, timedelta, Enum, Message)


@dataclass(frozen=True, slots=True)
class _ObjectStates:
    """Objects that their owner may change, and what each held when it was seen.

    An object is compared with a copy of its fields, in which other objects are themselves, and are here too: so that a
    change is seen wherever it is, and nothing calls the `__eq__` of a class, which is far slower.
    """

    objects: Mapping[_Reader, list[Any]] = field(default_factory=dict[_Reader, list[Any]])
    states: Mapping[_Reader, list[Any]] = field(default_factory=dict[_Reader, list[Any]])

    def and_of(self, found: Iterable[_ObjectStates]) -> _ObjectStates:
        """Return these with others behind them."""
        objects = {read: list(values) for read, values in self.objects.items()}
        states = {read: list(values) for read, values in self.states.items()}
        for more in found:
            for read, values in more.objects.items():
                objects.setdefault(read, []).extend(values)
                states.setdefault(read, []).extend(more.states[read])
        return _ObjectStates(objects, states)

    def are_unchanged(self) -> bool:
        """Return True if all objects hold what they held: one comparison in C."""
        return all(list(map(read, values)) == self.states[read] for read, values in self.objects.items())


@dataclass(frozen=True, slots=True)
class _SeenItem:
    """How one item looked, the data that is made of it, and the objects in it that their owner may change."""

    look: Any
    data: Any
    objects: _ObjectStates | None = None

    @classmethod
    def of(cls, item: Any, dump: Callable[[Any], Any], *, is_settled: bool) -> _SeenItem:
        """Look at an item; what its owner changes later changes nothing here."""
        if isinstance(item, Message) or (is_settled and type(item) is dict):
            return cls(item, item)
        data = dump(item)
        if data is item and isinstance(item, dict):
            own = copy_plain(cast(dict[str, Any], item))
            return cls(own, own)
        found = dict[int, list[tuple[_Reader, Any, Any]]]()
        look = _look(item, found)
        objects, states = dict[_Reader, list[Any]](), dict[_Reader, list[Any]]()
        for read, value, state in chain.from_iterable(found.values()):
            objects.setdefault(read, []).append(value)
            states.setdefault(read, []).append(state)
        return cls(look, copy_plain(data) if isinstance(item, dict) else data, _ObjectStates(objects, states))

    def is_like(self, item: Any) -> bool:
        """Return True if an item is as this one was."""
        is_same = item is self.look or item == self.look
        return is_same and (self.objects is None or self.objects.are_unchanged())


@dataclass(frozen=True, slots=True)
class SeenItems:
    """A caller's list as it was seen: its own objects, how they looked, and the data that is made of them.

    The data is nobody else's. Where a list goes on from one that was seen, its data does too: the same objects.
    """

    own: list[Any]
    # The same list as the data, where all items are dicts.
    looks: list[Any]
    data: SettledItems[Any]
    # The items that are objects or hold some, by their places; the states of all of these; and which are replies.
    _with_objects: Mapping[int, _SeenItem] = field(default_factory=dict[int, _SeenItem])
    _states: _ObjectStates = field(default_factory=_ObjectStates)
    _replies: frozenset[int] = frozenset()
    # Where a piece of data is, by its id.
    _places: dict[int, int] = field(default_factory=dict[int, int])

    @classmethod
    def none(cls) -> SeenItems:
        """Return what was seen before the first list."""
        data = SettledItems[Any]()
        return cls([], data, data)

    def same_start(self, items: Sequence[Any]) -> int:
        """Return how many items a list begins with that are as they were here: the same, or equal copies."""
        known = len(self.looks)
        if known <= len(items):
            start = list_start(items, known)
            # One comparison in C covers the same objects, equal copies, and objects changed in place.
            if start == self.looks and self._states.are_unchanged():
                return known
        pairs = enumerate(zip(items, self.looks, strict=False))
        return next((n for n, (item, _) in pairs if not self._at(n).is_like(item)), min(known, len(items)))

    def followed_by(self, items: Sequence[Any], start: int, dump: Callable[[Any], Any]) -> SeenItems:
        """Return a list that begins with so many of these items; `dump` makes data of those that were not seen."""
        own = list(items)  # the caller goes on with its list
        if start == len(own) == len(self.own):
            return replace(self, own=own)
        known = self if start == len(self.own) else self._cut(start)
        fresh = list(self._look_at(own, start, dump, is_settled=isinstance(items, SettledItems)))
        data = SettledItems(known.data)
        data.extend(seen.data for seen in fresh)
        known._places.update((id(seen.data), n) for n, seen in enumerate(fresh, start))
        objects = {n: seen for n, seen in enumerate(fresh, start) if seen.objects}
        if not objects and known.looks is known.data:
            return replace(known, own=own, looks=data, data=data)
        looks = [*known.looks, *(seen.look for seen in fresh)]
        states = known._states.and_of(seen.objects for seen in objects.values() if seen.objects)
        replies = known._replies.union(n for n in objects if is_reply(own[n]))
        return SeenItems(own, looks, data, {**known._with_objects, **objects}, states, replies, known._places)

    def _cut(self, end: int) -> SeenItems:
        """Return the first items alone."""
        with_objects = {n: seen for n, seen in self._with_objects.items() if n < end}
        states = _ObjectStates().and_of(seen.objects for seen in with_objects.values() if seen.objects)
        data, replies = SettledItems(self.data[:end]), frozenset(n for n in self._replies if n < end)
        places = {id(one): n for n, one in enumerate(data)}
        looks = data if self.looks is self.data else self.looks[:end]
        return SeenItems(self.own[:end], looks, data, with_objects, states, replies, places)

    def given_back(self) -> list[Any]:
        """Return the whole list as its caller gets it back: its own objects, but for replies."""
        given = list(self.own)
        for place in self._replies:
            given[place] = copy_plain(self.data[place])
        return given

    def own_of(self, data: Any) -> Any:
        """Return the caller's own object that a piece of data was made of; None if there is none to give back."""
        place = self._places.get(id(data), len(self.data))
        # Ids are used again.
        is_there = place < len(self.data) and self.data[place] is data
        return self.own[place] if is_there and place not in self._replies else None

    def _at(self, place: int) -> _SeenItem:
        return self._with_objects.get(place) or _SeenItem(self.looks[place], self.data[place])

    def _look_at(
        self, own: Sequence[Any], start: int, dump: Callable[[Any], Any], *, is_settled: bool
    ) -> Iterator[_SeenItem]:
        """Look at items from a place on; those that are still as they were are not looked at again."""
        by_own = {id(item): place for place, item in enumerate(self.own)} if start < len(self.own) else {}
        for place in range(start, len(own)):
            item = own[place]
            before = (place, by_own.get(id(item), place)) if by_own else ()
            known = next((seen for n in before if n < len(self.own) and (seen := self._at(n)).is_like(item)), None)
            try:
                yield known or _SeenItem.of(item, dump, is_settled=is_settled)
            except RecursionError:
                raise too_deep(f"messages[{place}]") from None


def _look(value: Any, found: dict[int, list[tuple[_Reader, Any, Any]]]) -> Any:
    """Return a value with containers of its own; objects that can be compared by their fields are in `found`."""
    if value is None or isinstance(value, _UNCHANGEABLE):
        return value
    kind: type[Any] = type(cast(object, value))
    if isinstance(value, dict):
        fields = cast(dict[Any, Any], value)
        return {key: one if type(one) is str else _look(one, found) for key, one in fields.items()}
    if isinstance(value, list):
        return [_look(inner, found) for inner in cast(list[Any], value)]
    if kind is tuple:
        return tuple(_look(inner, found) for inner in cast(tuple[Any, ...], value))
    readers = _readers_of(kind)
    if not readers:
        return copy_plain(value)
    if id(value) not in found:
        found[id(value)] = []  # it may hold itself
        found[id(value)] = [(read, value, _look(read(value), found)) for read in readers]
    return value


@lru_cache(maxsize=1_000)
def _readers_of(kind: type) -> tuple[_Reader, ...]:
    """Return what reads all that objects of a class hold; nothing if they may hold more than is read."""
    slots = {name for base in kind.__mro__ for name in _slots_of(base)}
    if kind.__dictoffset__ == 0 or any(not name.startswith("__") for name in slots):
        return ()
    # What is larger than a plain object with these slots, its fields and its weak references is made in C, and holds
    # what nobody sees.
    if kind.__basicsize__ > object.__basicsize__ + _POINTER_BYTES * (len(slots) + 2):
        return ()
    return _MODEL_FIELDS if _MODEL_SLOT in slots else _FIELDS


def _slots_of(base: type) -> tuple[str, ...]:
    slots: str | Iterable[str] = vars(base).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def plain_item(item: Any) -> Any:
    """Return a message object of a client library as the dict that is sent for it; anything else as it is.

    What a dialect reads as it is stays as it is: dicts, contents of Gemini, the messages of a framework.
    """
    if isinstance(item, dict):
        fields = cast(dict[str, Any], item)
        return as_json_data(fields) if _holds_objects(fields) else fields
    if isinstance(item, Message) or not hasattr(item, "model_dump") or _has_a_dialect(item):
        return item
    fields = cast(dict[str, Any], as_json_data(item))
    if is_reply(item):
        return {"role": fields["role"], "content": fields["content"]}
    if "role" in fields and "type" not in fields:
        return {key: value for key, value in fields.items() if value is not None or key == "content"}
    return fields


def is_reply(item: object) -> bool:
    """Return True for Anthropic's `Message`, which its own API does not take back: only its role and content."""
    return is_of(item, "anthropic") and hasattr(item, "role") and hasattr(item, "content")


def _holds_objects(item: Mapping[str, Any]) -> bool:
    inner = (item.get("content"), item.get("tool_calls"))
    if inner[1] is None and isinstance(inner[0], str):  # most messages
        return False
    return any(hasattr(part, "model_dump") for parts in inner if is_list(parts) for part in parts)


def _has_a_dialect(item: object) -> bool:
    is_content = hasattr(item, "parts") and hasattr(item, "role")
    return is_content or _package_of(item) is not None


def _package_of(item: object) -> str | None:
    if isinstance(item, dict | str | Message):
        return None
    modules = [base.__module__ for base in type(item).__mro__]
    return next((name for name in _FRAMEWORKS if any(module.startswith(name) for module in modules)), None)


def framework_dialect(item: object) -> Dialect | None:
    """Return the dialect of the framework that an object belongs to; None for everything else."""
    package = _package_of(item)
    return _load(package) if package else None


@cache
def _load(package: str) -> Dialect:
    module, name = _FRAMEWORKS[package]
    return getattr(import_module(module), name)()


# -- what is no message -----------------------------------------------------------------------------------------------


def check_items(items: Sequence[Any], start: int = 0) -> None:
    """Raise InvalidHistory for the first item that is no message in any form, saying what to do.

    `start` is the place of the first one in the caller's list.
    """
    for place, item in enumerate(items, start):
        if isinstance(item, Message):
            continue
        problem = _wrong_dict(item) if is_mapping(item) else _wrong_object(item)
        if problem:
            what, hint = problem
            raise InvalidHistory(f"expected a message, got {what}", place=f"messages[{place}]", hint=hint)


def _wrong_dict(item: Mapping[str, Any]) -> tuple[str, str] | None:
    if "role" not in item and "type" not in item:
        for key, hint in _ANSWERS:
            if key in item:
                is_converse = key == "output" and is_mapping(item[key]) and "message" in item[key]
                return f"a dict with {key!r}", _CONVERSE_ANSWER if is_converse else hint
        return None
    parts = item.get("parts")
    if is_list(parts) and any(is_mapping(part) and "type" in part for part in parts):
        return "a dict with 'parts' that have a type", _UI_MESSAGE
    if "stop_reason" in item and "usage" in item and "content" in item:
        return "a whole answer of Anthropic", 'append {"role": "assistant", "content": response["content"]}'
    return None


def _wrong_object(item: object) -> tuple[str, str] | None:
    kind = type(item)
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    if hasattr(item, "model_dump"):
        if hasattr(item, "role") or _package_of(item):
            return None
        found = next((hint for key, hint in _ANSWERS if hasattr(item, key)), "")
        return None if _is_item(item) else (name, found or _block_hint(item))
    return name, _hint_for(item)


def _is_item(item: object) -> bool:
    """Return True for an object that is sent as a message, or as an item of Responses: with a role, or a type."""
    fields: object = as_json_data(item)
    if is_of(item, "anthropic", "google") or not is_mapping(fields):
        return False
    return "role" in fields or isinstance(fields.get("type"), str)


def _block_hint(item: object) -> str:
    if is_of(item, "anthropic"):
        return 'put blocks into a message: {"role": "assistant", "content": response.content}'
    if is_of(item, "google"):
        return 'put parts into a content: {"role": "user", "parts": [part]}'
    return f"it has neither a role nor a type; {_A_DICT}"


def _hint_for(item: object) -> str:
    match item:
        case str():
            return 'say who speaks: {"role": "user", "content": text}'
        case bytes():
            return "pass what json.loads makes of it"
        case (str(), str()):
            return 'pass {"role": "user", "content": text} in place of a pair'
        case list() | tuple():
            return "pass one flat list: messages.extend(…) in place of append"
        case None:
            return "leave it out"
        case _ if inspect.isawaitable(item):
            return "await it first"
        case _ if is_dataclass(item):
            return f"{_A_DICT}; for the messages of a framework use its adapter: compact.adapters"
        case _:
            return f"{_A_DICT}, or an object of the openai, anthropic, google-genai or langchain package"
