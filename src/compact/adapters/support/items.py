"""Objects of client libraries in a history, as plain dicts and back: loops append what a client returned as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def as_plain(items: Sequence[Any]) -> list[Any]:
    """The items with pydantic objects (`response.choices[0].message`) as dicts; dicts are themselves."""
    return [_plain(item) for item in items]


def own_objects(sent: Sequence[Any], plain: Sequence[Any], items: Sequence[Any]) -> list[Any]:
    """What is sent, with the caller's own object wherever its plain form was not changed."""
    own = {id(dumped): item for dumped, item in zip(plain, items, strict=True)}
    return [own.get(id(item), item) for item in sent]


def _plain(item: Any) -> Any:
    dump = None if isinstance(item, Mapping) else getattr(item, "model_dump", None)
    return item if dump is None else dump(exclude_none=True)
