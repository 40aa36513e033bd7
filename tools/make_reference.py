"""Makes docs/configuration.md and docs/api.md from the code; `--check` only says whether they are up to date."""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
import re
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

import compact
import compact.adapters
from compact.config import CompactConfig

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # or it asks the network when it is imported
DOCS = Path(__file__).parents[1] / "docs"
MADE = "<!-- Made by tools/make_reference.py: change the code, not this page. -->"
# Every folder of compact.adapters is an adapter, except the one that they share.
ADAPTERS = sorted(found.name for found in pkgutil.iter_modules(compact.adapters.__path__) if found.name != "support")
# What is public beside the front door, by the room it lives in.
ROOMS: dict[str, tuple[str, ...]] = {
    "Adapters": tuple(f"compact.adapters.{name}" for name in ADAPTERS),
    "Testing": ("compact.testing",),
}


def main() -> int:
    pages = {"configuration.md": configuration(), "api.md": api()}
    stale = [name for name, text in pages.items() if _read(DOCS / name) != text]
    if "--check" not in sys.argv:
        for name in stale:
            (DOCS / name).write_text(pages[name], encoding="utf-8")
    print("\n".join(f"docs/{name} {'is out of date' if '--check' in sys.argv else 'written'}" for name in stale))
    return 1 if stale and "--check" in sys.argv else 0


def _read(page: Path) -> str:
    return page.read_text(encoding="utf-8") if page.exists() else ""


# -- settings ---------------------------------------------------------------------------------------------------------


def configuration() -> str:
    """Every setting, section by section, with its default and what it means."""
    parts = [
        "# Configuration",
        MADE,
        "`CompactConfig()` works as it is. A setting given in code overrules a `COMPACT_*` variable, which overrules a "
        "YAML or JSON file (`CompactConfig.load(path)`), field by field. In a variable the sections are joined by two "
        "underscores: `COMPACT_POLICY__TRIGGER_PCT=0.9`; lists and objects are JSON. `compact config show` prints "
        "every setting, its value and where it came from.",
        *_section("", CompactConfig),
    ]
    return "\n\n".join(parts) + "\n"


def _section(path: str, model: type[BaseModel]) -> Iterator[str]:
    rows: list[str] = []
    inner: list[tuple[str, type[BaseModel]]] = []
    for name, field in model.model_fields.items():
        there = f"{path}.{name}" if path else name
        if inspect.isclass(field.annotation) and issubclass(field.annotation, BaseModel):
            inner.append((there, field.annotation))
        else:
            rows.append(f"| `{name}` | {_type(field)} | {_default(field)} | {_words(field.description)} |")
    yield f"## {path or 'The whole'}"
    yield _words(_summary(model))
    if rows:
        yield "\n".join(["| setting | is | default | meaning |", "|---|---|---|---|", *rows])
    for there, section in inner:
        yield from _section(there, section)


def _type(field: FieldInfo) -> str:
    kind = field.annotation
    text = kind.__name__ if inspect.isclass(kind) and not getattr(kind, "__args__", None) else str(kind)
    text = re.sub(r"\b(typing|collections\.abc|pydantic\.types|compact\.[\w.]+)\.", "", text)
    choices = re.findall(r"Literal\[(.*?)\]", text)
    if choices:
        text = re.sub(r"Literal\[(.*?)\]", lambda found: found[1].replace(", ", " or "), text)
    limits = [
        f"{_SIGNS[type(bound).__name__]} {_bound(bound)}" for bound in field.metadata if type(bound).__name__ in _SIGNS
    ]
    return _cell(f"{text}{', ' if limits else ''}{', '.join(limits)}")


_SIGNS = {"Ge": "≥", "Gt": ">", "Le": "≤", "Lt": "<", "MinLen": "length ≥"}


def _bound(bound: Any) -> object:
    return next(
        value
        for value in (getattr(bound, name, None) for name in ("ge", "gt", "le", "lt", "min_length"))
        if value is not None
    )


def _default(field: FieldInfo) -> str:
    value = field.get_default(call_default_factory=True)
    if isinstance(value, SecretStr | type(None)):
        return "none"
    if isinstance(value, frozenset | tuple | list):
        value = sorted(value) if isinstance(value, frozenset) else list(value)
    return f"`{_cell(getattr(value, 'value', value) if value != '' else '(empty)')}`"


# -- names ------------------------------------------------------------------------------------------------------------


def api() -> str:
    """Every name of the front door, with its signature and first sentences."""
    parts = [
        "# API",
        MADE,
        "What `import compact` offers. Everything else is in the modules named in the [architecture](ARCHITECTURE.md); "
        "names with a leading underscore are nobody's business.",
    ]
    names = sorted(name for name in compact.__all__ if not name.startswith("_"))
    for name in ("CompactManager", *(name for name in names if name != "CompactManager")):
        parts.extend(_entry(name, getattr(compact, name)))
    for title, modules in ROOMS.items():
        parts.append(f"## {title}")
        for module in modules:
            loaded = importlib.import_module(module)
            parts.append(f"### {module}")
            parts.append(_words((inspect.getdoc(loaded) or "").split("\n\n")[0]))
            parts.append("\n".join(f"- {_line(name, getattr(loaded, name))}" for name in loaded.__all__))
    return "\n\n".join(parts) + "\n"


def _line(name: str, value: Any) -> str:
    if not callable(value) or not inspect.getdoc(value):
        return f"`{name}`" + (f": `{_cell(value)}`" if isinstance(value, str | dict) else "")
    return f"`{name}{_signature(value)}`: {_words(_summary(value))}"


def _entry(name: str, value: Any) -> Iterator[str]:
    yield f"## {name}"
    if inspect.isclass(value) and not issubclass(value, BaseException):
        yield _words(_summary(value))
        if is_dataclass(value):
            listed = ", ".join(f"`{spec.name}`" for spec in fields(value) if not spec.name.startswith("_"))
            yield f"Fields: {listed}."
        yield from _methods(value)
    elif callable(value) and not inspect.isclass(value):
        yield f"`{name}{_signature(value)}`"
        yield _words(_summary(value))
    else:
        yield _words(_summary(value) if inspect.isclass(value) else f"The type `{_cell(value)}`.")


def _methods(kind: type) -> Iterator[str]:
    if issubclass(kind, BaseModel):
        yield "All its fields: [configuration](configuration.md)."
        return
    rows: list[str] = []
    for name, member in inspect.getmembers(kind):
        if name.startswith("_"):
            continue
        if isinstance(member, property):
            rows.append(f"| `{name}` | {_words(_summary(member))} |")
        elif inspect.isroutine(member) and inspect.getdoc(member):
            rows.append(f"| `{name}{_signature(member)}` | {_words(_summary(member))} |")
    if rows:
        yield "\n".join(["| | |", "|---|---|", *rows])


def _signature(value: Any) -> str:
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    shown = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in signature.parameters.values()
        if parameter.name not in ("self", "cls")
    ]
    return _cell(
        re.sub(r"<[^>]*>", "…", str(signature.replace(parameters=shown, return_annotation=inspect.Signature.empty)))
    )


def _summary(value: Any) -> str:
    return (inspect.getdoc(value) or "").strip()


def _words(text: str | None) -> str:
    return _cell(re.sub(r"\s+", " ", text or ""))


def _cell(value: object) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    raise SystemExit(main())
