"""Whatever a caller has in hand as a message: objects of client libraries and frameworks, read as plain data.

No client library is imported here: objects are known by their fields, and by the package of their class.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from functools import cache
from importlib import import_module
from itertools import takewhile
from operator import is_
from typing import Any, Generic, TypeVar, cast

from compact.core.errors import InvalidHistory
from compact.core.json_data import is_list, is_mapping
from compact.core.log.messages import Message
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
    """A caller's items as plain data, and the way back to its own objects.

    `is_plain` is set if all items are data as they are, and `are_dicts` if all of them are dicts besides.
    """

    own: list[T]
    plain: list[Any]
    is_plain: bool
    are_dicts: bool = False

    @classmethod
    def read(
        cls, items: Sequence[T], dump: Callable[[T], Any], before: PlainItems[T] | None = None, *, start: int = 0
    ) -> PlainItems[T]:
        """Return items with what `dump` makes of each; data that is as it was `before` is the same data.

        `start` is how many of the first items are as they were.
        """
        own = list(items)  # the caller goes on with its list
        if before is None or before.is_plain:
            # Nothing was made of the items before: those that are still there are as they were.
            fresh = own[start:]
            data = list(map(dump, fresh))
            if not all(map(is_, fresh, data)):
                return cls(own, [*own[:start], *data], is_plain=False)
            are_dicts = (not start or (before is not None and before.are_dicts)) and set(map(type, fresh)) <= {dict}
            return cls(own, own, is_plain=True, are_dicts=are_dicts)
        known = {id(item): data for item, data in zip(before.own, before.plain, strict=True)}
        plain = [_same_or_new(dump(item), item, known.get(id(item))) for item in own]
        return cls(own, plain, all(map(is_, own, plain)))

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


def same_start(known: PlainItems[Any], items: Sequence[Any]) -> int:
    """Return how many items a list begins with that the list before, which is `known`, began with, too.

    They are the very same objects, or equal dicts: a proxy reads every request anew. The last one does not count, since
    the caller may have been at work on it.
    """
    before = known.own[:-1]
    start = list(items[: len(before)])
    # In C: on most calls all of them are the same. What is the same object is not compared further.
    if len(start) == len(before) and (before == start if known.are_dicts else all(map(is_, before, start))):
        return len(before)
    return sum(1 for _ in takewhile(_is_as_before, zip(before, start, strict=False)))


def _is_as_before(pair: tuple[Any, Any]) -> bool:
    one, other = pair
    return one is other or (type(one) is dict and type(other) is dict and one == other)


def _same_or_new(data: Any, item: object, known: Any) -> Any:
    return known if data is not item and known is not None and known == data else data


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
