"""A list that goes on from the one before is known at a glance, and whatever was changed in it in place is noticed."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from operator import is_
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from compact.core.errors import InvalidHistory
from compact.core.messages.message import SettledItems
from compact.dialects.objects import SeenItems
from compact.testing import dialogue, user


@dataclass
class Part:
    text: str
    extra: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass
class Turn:
    parts: list[Part]
    number: int = 0


@dataclass(slots=True)
class SlottedTurn:
    parts: list[Part]


class Model(BaseModel):
    model_config = ConfigDict(extra="allow")

    content: Any
    inner: Any = None


class Name(str):
    """A text with a field of its own: more than its fields tell."""

    nickname = ""


def as_it_is(item: Any) -> Any:
    return item


def seen_once(items: list[Any]) -> SeenItems:
    return SeenItems.none().followed_by(items, 0, as_it_is)


def set_text(turn: Any) -> None:
    turn.parts[0].text = "changed"


def set_in_dict(turn: Any) -> None:
    turn.parts[0].extra["deep"].append(1)


CHANGES: dict[str, tuple[Any, Callable[[Any], object]]] = {
    "a key of a dict is renamed": ({"role": "user", "text": "a"}, lambda item: item.update(content=item.pop("text"))),
    "a part of a dict": (
        {"role": "user", "content": [{"text": "a"}]},
        lambda item: item["content"][0].update(text="b"),
    ),
    "a field": (Turn([Part("a")]), lambda item: setattr(item, "number", 1)),
    "a field of an object in a list": (Turn([Part("a")]), set_text),
    "a dict in an object in a list": (Turn([Part("a", {"deep": []})]), set_in_dict),
    "another object of the same look, and that changed": (
        Turn([Part("a")]),
        lambda item: (setattr(item, "parts", copy.deepcopy(item.parts)), set_text(item)),
    ),
    "an object with slots": (SlottedTurn([Part("a")]), set_text),
    "a model": (Model(content="a"), lambda item: setattr(item, "content", "b")),
    "a model in a dict in a model": (
        Model(content={"inner": Model(content="a")}),
        lambda item: setattr(item.content["inner"], "content", "b"),
    ),
    "what a model has besides its fields": (Model(content="a"), lambda item: setattr(item, "more", 1)),
    "a model in a dict": (
        {"role": "user", "content": [Model(content="a")]},
        lambda item: setattr(item["content"][0], "content", "b"),
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_whatever_is_changed_in_place_is_noticed(what: str) -> None:
    item, change = CHANGES[what]
    items = [user("before"), copy.deepcopy(item), user("behind")]
    seen = seen_once(items)
    assert seen.same_start(items) == 3
    before = repr(seen.looks[1])
    change(items[1])
    assert seen.same_start(items) == 1, what
    again = seen.followed_by(items, 1, as_it_is)
    assert again.same_start(items) == 3
    assert again.data[2] is seen.data[2], "what was not changed is not looked at again"
    if isinstance(items[1], dict):
        assert repr(seen.data[1]) == before, "the data that was made of it is nobody else's"


def test_an_object_that_holds_itself_is_looked_at_once() -> None:
    turn = Turn([Part("a")])
    turn.parts[0].extra["turn"] = turn
    seen = seen_once([turn])
    assert seen.same_start([turn]) == 1
    turn.number = 2
    assert seen.same_start([turn]) == 0


def test_a_text_of_a_class_with_fields_is_compared_as_a_text() -> None:
    items = [{"role": "user", "content": Name("a")}]
    assert seen_once(items).same_start([{"role": "user", "content": "a"}]) == 1


@pytest.mark.parametrize("kind", [list, SettledItems])
def test_a_list_that_was_cut_moved_and_added_to_comes_back_as_its_own_objects(kind: type[list[Any]]) -> None:
    first = kind([*dialogue(4), Turn([Part("a")])])
    seen = seen_once(first)
    for items in (kind(first[3:]), kind([*first, user("new")]), kind(copy.deepcopy(first)), kind(reversed(first))):
        now = seen.followed_by(items, seen.same_start(items), as_it_is)
        assert all(map(is_, now.given_back(), items))
        assert all(now.own_of(data) is item for data, item in zip(now.data, items, strict=True))
        assert list(map(repr, now.data)) == list(map(repr, items))
        assert now.own_of(user("new")) is None


def test_what_is_added_is_all_that_is_looked_at() -> None:
    """Data goes on with the same objects: whoever has seen it before knows it by that."""
    looked_at: list[Any] = []

    def dump(item: Any) -> Any:
        looked_at.append(item)
        return item

    items: list[Any] = [*dialogue(4), Turn([Part("a")])]
    seen = SeenItems.none().followed_by(items, 0, dump)
    looked_at.clear()
    items += [user("new")]
    longer = seen.followed_by(items, seen.same_start(items), dump)
    assert looked_at == [user("new")]
    assert all(map(is_, longer.data, seen.data))


def test_an_item_that_is_nested_too_deeply_is_named() -> None:
    cyclic: dict[str, Any] = {"role": "user"}
    cyclic["content"] = [cyclic]
    with pytest.raises(InvalidHistory, match="nested too deeply") as caught:
        seen_once([user("a"), cyclic])
    assert caught.value.place == "messages[1]"
