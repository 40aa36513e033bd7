"""The pages of the API, made from docstrings: signature, arguments, errors and an example of each name."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator, Sequence
from enum import Enum
from functools import cache, cached_property
from typing import Any

from docstrings import ADAPTER_MODULES, PublicName, constants_of, names_of
from pydantic import BaseModel
from setting_sections import setting_sections

from compact.config import CompactConfig

# Chosen: a signature that is longer has a line for each argument.
_MAX_SIGNATURE_CHARS = 85
_MEANT = "A method's example goes on where the example of its class ended."


def api_page(made: str) -> str:
    """Return the page on what `import compact` offers."""
    names = names_of("compact")
    groups = {
        "The manager": [name for name in names if name.name == "CompactManager"],
        "Plain functions": [name for name in names if not name.is_class],
        "Settings": sorted(filter(_is_setting, names), key=lambda name: name.name != "CompactConfig"),
        "Errors": [name for name in names if name.is_class and issubclass(name.value, BaseException)],
    }
    grouped = {name.name for group in groups.values() for name in group}
    groups["Plans, prompts, reports and plug-ins"] = [name for name in names if name.name not in grouped]
    parts = [
        "# API",
        made,
        "What `import compact` offers. [Adapters](api-adapters.md) and [what tests use](api-testing.md) have pages of "
        "their own; everything else is in the modules named in the [architecture](ARCHITECTURE.md), and names with a "
        f"leading underscore may change at any time. {_MEANT}",
    ]
    for title, group in groups.items():
        parts += [f"**{title}**", "\n".join(f"- {_link(name)}: {name.doc.summary}" for name in group)]
    seen: set[str] = set()
    for title, group in groups.items():
        parts += [f"## {title}", *(part for name in group for part in _entry(name, seen))]
    return _page(parts)


def adapters_page(made: str) -> str:
    """Return the page on the adapters."""
    parts = ["# API of the adapters", made, f"Each has a guide, which shows it at work. {_MEANT}"]
    for module in ADAPTER_MODULES:
        parts += _module(module)
    return _page(parts)


def testing_page(made: str) -> str:
    """Return the page on `compact.testing`."""
    parts = ["# API for tests", made, f"What Compact's own tests use, for yours. {_MEANT}", *_module("compact.testing")]
    return _page(parts)


def _page(parts: Sequence[str]) -> str:
    return "\n\n".join(parts) + "\n"


def _module(module: str) -> Iterator[str]:
    yield f"## {module}"
    yield " ".join((inspect.getdoc(importlib.import_module(module)) or "").split("\n\n")[0].split())
    constants = constants_of(module)
    if constants:
        yield "\n".join(f"- `{name}`: `{re.sub(r'typing[.]', '', str(value))}`" for name, value in constants.items())
    seen: set[str] = set()
    for name in names_of(module):
        yield from _entry(name, seen)


def _link(name: PublicName) -> str:
    return f"[`{name.name}`](#{name.name.lower()})"


def _is_setting(name: PublicName) -> bool:
    return name.is_class and issubclass(name.value, BaseModel)


def _entry(name: PublicName, seen: set[str]) -> Iterator[str]:
    """Yield a name with its methods; those that several classes have stand with the first of them, and in `seen`."""
    yield f"### {name.name}"
    yield from _explanation(name)
    members = [member for member in name.members() if not member.is_alias and _place(member) not in seen]
    seen.update(map(_place, members))
    properties = [f"- `{member.name}`: {member.doc.summary}" for member in members if member.is_property]
    if properties:
        yield "**Properties**"
        yield "\n".join(properties)
    hooks = [f"`{member.name}`" for member in members if member.is_hook and not member.is_property]
    if hooks:
        yield f"Called for you: {', '.join(hooks)}."
    twins = {member.sync_twin: member for member in members if member.sync_twin}
    for member in members:
        if not (member.is_property or member.is_hook or member.sync_twin):
            yield f"#### {name.name}.{member.name}"
            yield from _explanation(member)
            if member.path in twins:
                yield f"In an event loop: `await {twins[member.path].name}(…)`, with the same arguments."


def _place(member: PublicName) -> str:
    """Return where a method or property is defined."""
    found = member.value
    found = found.func if isinstance(found, cached_property) else found.fget if isinstance(found, property) else found
    return f"{found.__module__}.{found.__qualname__}"


def _explanation(name: PublicName) -> Iterator[str]:
    if not _is_setting(name) and not (name.is_class and issubclass(name.value, Enum)):
        yield _fenced("python", _signature(name))
    yield from name.doc.paragraphs
    if _is_setting(name):
        yield f"All its settings: [configuration](configuration.md#{_anchors()[name.value]})."
    yield from _listed(name, "Args", "Arguments")
    yield from _listed(name, "Attributes", "Attributes")
    if "Returns" in name.doc.sections:
        yield f"**Returns** {' '.join(name.doc.sections['Returns'].split())}"
    yield from _listed(name, "Raises", "Raises")
    if "Example" in name.doc.sections:
        yield _fenced("pycon", name.doc.sections["Example"])


def _listed(name: PublicName, section: str, title: str) -> Iterator[str]:
    entries = name.doc.entries(section)
    if entries:
        yield f"**{title}**"
        yield "\n".join(f"- `{one}`: {said}" for one, said in entries.items())


@cache
def _anchors() -> dict[type[BaseModel], str]:
    """Return the anchor of each section's heading in the page of the settings."""
    paths = setting_sections("", CompactConfig)
    return {model: re.sub(r"[^\w-]", "", path.lower().replace(" ", "-")) for path, model in paths}


def _fenced(language: str, text: str) -> str:
    return f"```{language}\n{text}\n```"


def _signature(name: PublicName) -> str:
    """Return how a name is called, on one line or with a line for each argument."""
    called = name.name if not name.owner else f"{name.owner.name}.{name.name}"
    called = f"await {called}" if inspect.iscoroutinefunction(name.value) else called
    shown = [_parameter(one) for one in name.parameters]
    kinds = [one.kind for one in name.parameters]
    if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        shown.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    if inspect.Parameter.POSITIONAL_ONLY in kinds:
        shown.insert(kinds.count(inspect.Parameter.POSITIONAL_ONLY), "/")
    result = "" if name.is_class else f" -> {_type(inspect.signature(name.value).return_annotation)}"
    line = f"{called}({', '.join(shown)}){result}"
    if len(line) <= _MAX_SIGNATURE_CHARS:
        return line
    return "\n".join([f"{called}(", *(f"    {one}," for one in shown), f"){result}"])


def _parameter(parameter: inspect.Parameter) -> str:
    star = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    text = f"{star}{parameter.name}: {_type(parameter.annotation)}"
    return text if parameter.default is inspect.Parameter.empty else f"{text} = {_default(parameter.default)}"


def _default(value: Any) -> str:
    if callable(value):
        return str(getattr(value, "__name__", "…"))
    text = repr(value)
    return "…" if text.startswith("<") else text


def _type(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    return re.sub(r"\b(typing|collections\.abc|compact\.[\w.]+)\.", "", text)
