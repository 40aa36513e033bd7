"""Which names are public, and their docstrings in parts: what it is, arguments, result, errors, example.

`tools/api_pages.py` makes the pages of the API from this, and `tests/test_docstrings.py` checks what it finds.
"""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import compact
import compact.adapters
from compact.dialects import Dialect

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # or it asks the network when it is imported
SECTIONS = ("Args", "Attributes", "Returns", "Raises", "Example")
# How the docstring of a second name for something begins.
ALIASES = ("Deprecated", "Another name for")
# Every folder of compact.adapters is an adapter, except the one that they share.
ADAPTERS = sorted(found.name for found in pkgutil.iter_modules(compact.adapters.__path__) if found.name != "support")
ADAPTER_MODULES = tuple(f"compact.adapters.{name}" for name in ADAPTERS)
MODULES = ("compact", *ADAPTER_MODULES, "compact.testing")
_HEADING = re.compile(rf"^({'|'.join(SECTIONS)}):$", re.MULTILINE)
_ENTRY = re.compile(r"^(\w+): ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Docstring:
    """A docstring in parts: the text before the first section, and the body of each section."""

    text: str
    sections: Mapping[str, str]

    @classmethod
    def of(cls, value: object) -> Docstring:
        """Read the docstring of a name; an empty one if it has none of its own."""
        text, *rest = _HEADING.split(inspect.getdoc(value) or "")
        bodies = (inspect.cleandoc(f"\n{body}") for body in rest[1::2])
        return cls(text.strip(), dict(zip(rest[::2], bodies, strict=True)))

    @property
    def summary(self) -> str:
        """The first paragraph, in one line."""
        return " ".join(self.text.split("\n\n")[0].split())

    @property
    def paragraphs(self) -> list[str]:
        """The text before the sections, a line for each paragraph."""
        return [" ".join(paragraph.split()) for paragraph in self.text.split("\n\n")]

    def entries(self, section: str) -> dict[str, str]:
        """Return what a section says of each name."""
        _, *parts = _ENTRY.split(self.sections.get(section, ""))
        return {name: " ".join(said.split()) for name, said in zip(parts[::2], parts[1::2], strict=True)}


@dataclass(frozen=True)
class PublicName:
    """A class, function, method or property that users see; `owner` is the class of a method."""

    path: str
    value: Any
    owner: PublicName | None = None

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition(".")[2]

    @cached_property
    def doc(self) -> Docstring:
        """Its docstring."""
        return Docstring.of(self.value)

    @property
    def is_class(self) -> bool:
        """True for a class."""
        return inspect.isclass(self.value)

    @property
    def is_property(self) -> bool:
        """True for a property, whether it is computed once or each time."""
        return isinstance(self.value, property | cached_property)

    @property
    def is_alias(self) -> bool:
        """True for a second name of something."""
        return self.doc.text.startswith(ALIASES)

    @property
    def is_hook(self) -> bool:
        """True for a method that its framework, or the engine, declares and calls."""
        if self.owner is None:
            return False
        declared = [kind for kind in self.owner.value.__mro__ if not kind.__module__.startswith("compact.")]
        return any(hasattr(kind, self.name) for kind in (*declared, *self._protocols()))

    def _protocols(self) -> Iterator[type]:
        if self.owner and self.owner.name.endswith("Dialect"):
            yield Dialect

    @property
    def sync_twin(self) -> str:
        """The path of what the name does without an event loop; empty if there is no such name."""
        home, _, name = self.path.rpartition(".")
        holder = self.owner.value if self.owner else importlib.import_module(home)
        return f"{home}.{name[1:]}" if name.startswith("a") and hasattr(holder, name[1:]) else ""

    @cached_property
    def parameters(self) -> tuple[inspect.Parameter, ...]:
        """What it is called with, but for `self` and `cls`, and for what a framework's class takes."""
        if self.is_property:
            return ()
        given = inspect.signature(self.value).parameters.values()
        return tuple(one for one in given if one.name not in ("self", "cls") and one.name not in self._inherited())

    def _inherited(self) -> set[str]:
        kinds = self.value.__mro__ if self.is_class else ()
        others = (kind for kind in kinds if not kind.__module__.startswith("compact."))
        return {name for kind in others for name in getattr(kind, "__dataclass_fields__", ())}

    def members(self) -> Iterator[PublicName]:
        """Yield the methods and properties of a class that are defined in Compact, its own first, in their order."""
        seen: set[str] = set()
        for kind in self.value.__mro__ if self.is_class else ():
            if not kind.__module__.startswith("compact."):
                continue
            for name, found in vars(kind).items():
                if name.startswith("_") or name in seen or _is_generated(name, found):
                    continue
                if isinstance(found, property | classmethod | staticmethod) or inspect.isroutine(found):
                    seen.add(name)
                    value = found if isinstance(found, property) else getattr(self.value, name)
                    yield PublicName(f"{self.path}.{name}", value, self)


def _is_generated(name: str, found: object) -> bool:
    """Return True for what pydantic adds to a class."""
    return name == "model_post_init" or getattr(found, "__module__", "").startswith("pydantic.")


def names_of(module: str) -> list[PublicName]:
    """Return the public classes and functions of a module."""
    loaded = importlib.import_module(module)
    found = ((name, getattr(loaded, name)) for name in loaded.__all__ if not name.startswith("_"))
    return [PublicName(f"{module}.{name}", value) for name, value in found if _is_documented(value)]


def constants_of(module: str) -> dict[str, Any]:
    """Return what else a module exports: values, which have no docstring."""
    loaded = importlib.import_module(module)
    found = {name: getattr(loaded, name) for name in loaded.__all__ if not name.startswith("_")}
    return {name: value for name, value in found.items() if not _is_documented(value)}


def _is_documented(value: object) -> bool:
    return inspect.isclass(value) or inspect.isroutine(value)


def public_names() -> list[PublicName]:
    """Return every public name of every public module, methods and properties behind their class."""
    found: list[PublicName] = []
    for module in MODULES:
        for name in names_of(module):
            found += [name, *name.members()]
    return found
