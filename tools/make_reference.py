"""Make docs/configuration.md, the pages of the API and the tables of docs/OBSERVABILITY.md from the code.

`--check` only says whether they are up to date.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from api_pages import adapters_page, api_page, testing_page
from docstrings import Docstring
from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo
from setting_sections import is_section, setting_sections

from compact.config import CompactConfig
from compact.core.engine.event_spec import Metric
from compact.core.engine.events import EVENTS, CompactionEvent
from compact.telemetry.metrics import EVENT_COUNT, METRICS

DOCS = Path(__file__).parents[1] / "docs"
MADE = "<!-- Made by tools/make_reference.py: change the code, not this page. -->"


def main() -> int:
    pages = {
        "configuration.md": configuration(),
        "api.md": api_page(MADE),
        "api-adapters.md": adapters_page(MADE),
        "api-testing.md": testing_page(MADE),
        "OBSERVABILITY.md": observability(),
    }
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
        "## Where settings come from",
        "`CompactConfig()` works as it is. A setting given in code, or as an option of a command, overrules a "
        "`COMPACT_*` variable, which overrules a YAML or JSON file, field by field. In a variable the sections are "
        "joined by two underscores: `COMPACT_POLICY__TRIGGER_PCT=0.9`; lists and objects are JSON.",
        "The file is the one that is named: `CompactConfig.load(path)`, or `--config PATH` of a command. Where none is "
        "named, a command reads `compact.yaml`, `compact.yml` or `compact.json` in the folder it is run in, and "
        "commands that do what an agent would do say so. `CompactConfig()` reads no file, because an agent may run in "
        "a folder that is not its owner's; if there is such a file, a notice says that it was not read. `compact "
        "config show` prints every setting, its value and where it came from.",
        *(part for path, model in setting_sections("", CompactConfig) for part in _section(path, model)),
    ]
    return "\n\n".join(parts) + "\n"


def _section(path: str, model: type[BaseModel]) -> Iterator[str]:
    fields = ((name, field) for name, field in model.model_fields.items() if not is_section(field.annotation))
    rows = [
        f"| `{name}` | {_type(field)} | {_default(field)} | {_words(field.description)} |" for name, field in fields
    ]
    yield f"## {path}"
    yield _words(Docstring.of(model).summary)
    if rows:
        yield "\n".join(["| setting | is | default | meaning |", "|---|---|---|---|", *rows])


def _type(field: FieldInfo) -> str:
    kind = field.annotation
    text = kind.__name__ if inspect.isclass(kind) and not getattr(kind, "__args__", None) else str(kind)
    text = re.sub(r"\b(typing|collections\.abc|pydantic\.types|compact\.[\w.]+)\.", "", text)
    choices = re.findall(r"Literal\[(.*?)\]", text)
    if choices:
        text = re.sub(r"Literal\[(.*?)\]", lambda found: found[1].replace(", ", " or "), text)
    # A limit of what a container holds is a part of its type's text.
    text = re.sub(r"Annotated\[(\w+), FieldInfo\(.*?metadata=\[(.*?)\]\)\]", _with_inner_limits, text)
    limits = [
        f"{_SIGNS[type(bound).__name__]} {_bound(bound)}" for bound in field.metadata if type(bound).__name__ in _SIGNS
    ]
    return _cell(f"{text}{', ' if limits else ''}{', '.join(limits)}")


def _with_inner_limits(found: re.Match[str]) -> str:
    limits = [f"{_SIGNS[name]} {value}" for name, value in re.findall(r"(\w+)\(\w+=([^)]*)\)", found[2])]
    return f"{found[1]} {' and '.join(limits)}"


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


# -- events and metrics -----------------------------------------------------------------------------------------------


def observability() -> str:
    """The page on observability, with its tables of events and metrics as the code has them."""
    page = _read(DOCS / "OBSERVABILITY.md")
    for mark, table in (("events", _events()), ("metrics", _metrics())):
        page, found = re.subn(
            rf"(<!-- {mark} -->\n).*?(\n<!-- /{mark} -->)",
            lambda part, rows=table: part[1] + rows + part[2],
            page,
            flags=re.S,
        )
        if found != 1:
            raise ValueError(f"docs/OBSERVABILITY.md has {found} parts {mark}, not one")
    return page


def _events() -> str:
    common = {field.name for field in fields(CompactionEvent)}
    rows = ["| event | class | severity | what it tells | log line | properties |", "|---|---|---|---|---|---|"]
    for name, kind in EVENTS.items():
        known = {field.name: str(field.type) for field in fields(kind) if field.name not in kind.spec.hidden}
        properties = ", ".join(
            f"`{field}: {_cell(of)}`" + (" (*content*)" if field in kind.spec.content else "")
            for field, of in {**known, **kind.spec.computed}.items()
            if field not in common
        )
        tells = _words(Docstring.of(kind).summary)
        cells = (f"`{name}`", f"`{kind.__name__}`", kind.spec.severity, tells, f"`{kind.spec.sentence}`", properties)
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def _metrics() -> str:
    rows = ["| what | OpenTelemetry | Prometheus | kind | unit | by | from |", "|---|---|---|---|---|---|---|"]
    for metric in METRICS:
        sources = [f"`{name}`" for name, kind in EVENTS.items() if metric in kind.spec.metrics]
        cells = (
            metric.help,
            f"`{metric.name}`" if metric.name else "",
            f"`{metric.prometheus_name}`",
            f"{metric.kind}; in Prometheus {metric.prometheus_kind}" if metric.prometheus_kind else metric.kind,
            f"`{metric.unit}`",
            _labels(metric),
            "every event" if metric is EVENT_COUNT else ", ".join(sources),
        )
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def _labels(metric: Metric) -> str:
    """The label of both; what OpenTelemetry has beside it is in brackets."""
    label = f"`{metric.label[0]}`" if metric.label else ""
    attributes = ", ".join(f"`{name}`" for name in metric.attributes)
    return f"{label} ({attributes})".strip() if attributes else label


def _words(text: str | None) -> str:
    return _cell(re.sub(r"\s+", " ", text or ""))


def _cell(value: object) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    raise SystemExit(main())
