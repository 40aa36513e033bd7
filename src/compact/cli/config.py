"""`compact config`: every setting, its value, and where it comes from."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from compact.cli import screen
from compact.cli.command_help import PlainCommand
from compact.cli.options import AsJson, ConfigFile
from compact.cli.settings import config_file, environment_settings, load_config

if TYPE_CHECKING:
    from compact.config import CompactConfig

app = typer.Typer(help="Show and check settings.", rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def show_help(context: typer.Context) -> None:
    """Show and check settings."""
    if context.invoked_subcommand is None:
        screen.write(context.get_help() + "\n")


@app.command(cls=PlainCommand)
def show(config: ConfigFile = None, as_json: AsJson = False) -> None:
    """List every setting with its value and where it comes from."""
    settings = load_config(config)
    fields = list(_fields(settings, config_file(config)))
    if as_json:
        screen.write_json(fields)
        return
    rows = [(field["field"], _value_text(field, settings), field["source"]) for field in fields]
    screen.table(("setting", "value", "from"), rows)


@app.command(cls=PlainCommand)
def check(path: Annotated[Path, typer.Argument(metavar="PATH", help="A configuration in YAML or JSON.")]) -> None:
    """Check a configuration file for errors."""
    load_config(path)
    in_file = sum(1 for _ in _leaves(_file_settings(path)))
    screen.line(f"ok: {path} sets {screen.quantity(in_file, 'field')}")
    overridden = [f"{variable} ({field})" for field, variable in environment_settings()]
    if overridden:
        screen.notice(f"the environment overrides it: {', '.join(overridden)}", label="note", style="yellow")


def _fields(settings: CompactConfig, file: Path | None) -> Iterator[dict[str, Any]]:
    """Yield every setting with its value, its source and its description."""
    from compact.config_sources import environment_names

    variables = dict(environment_settings())
    in_file = dict(_leaves(_file_settings(file))) if file else {}
    values = settings.model_dump(mode="json")
    for _, path, spec in environment_names(type(settings)):
        name = ".".join(path)
        value: Any = values
        for step in path:
            value = value[step]
        is_in_file = any(set_there == name or set_there.startswith(name + ".") for set_there in in_file)
        source = variables.get(name) or (str(file) if is_in_file else "default")
        yield {"field": name, "value": value, "source": source, "description": spec.description or ""}


def _file_settings(path: Path) -> dict[str, Any]:
    from compact.config_sources import read_file

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # already printed when the file was loaded
        return read_file(path)


def _leaves(settings: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every value in nested settings with its dotted name."""
    for name, value in settings.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(cast(Mapping[str, Any], value), f"{above}{name}.")
        else:
            yield f"{above}{name}", value


def _value_text(field: Mapping[str, Any], settings: CompactConfig) -> str:
    value = field["value"]
    if value is None and (own := _own_value(field["field"], settings)):
        return f"null ({own})"
    return value if isinstance(value, str) else screen.json_text(value)


def _own_value(name: str, settings: CompactConfig) -> str:
    """Return what stands in for a limit that is not set, if something does."""
    from compact.assembly.budget import build_budget

    if name not in ("max_context_tokens", "max_input_tokens", "policy.trigger_tokens"):
        return ""
    budget = build_budget(settings)
    if name == "max_context_tokens":
        return f"the model's: {budget.max_context_tokens:,}"
    if name == "max_input_tokens":
        return f"the model's: {budget.input_tokens:,}"
    return f"{budget.trigger_limit_tokens:,}: {budget.trigger_limit_source}" if budget.trigger_limit_tokens else ""
