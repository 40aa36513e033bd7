"""Where settings come from, and how a wrong one is explained."""

from __future__ import annotations

import inspect
import json
import os
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple, cast, get_args

import yaml
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from compact.core.errors import ConfigError
from compact.core.json_data import is_mapping

CONFIG_VERSION = "1.0"
ENV_PREFIX = "COMPACT_"
# The file of settings that commands read from the folder they are run in.
FILE_NAMES = ("compact.yaml", "compact.yml", "compact.json")
# Variables with our prefix that are no settings: the servers, the benchmarks and the tests read them.
NO_SETTINGS = frozenset({"COMPACT_DATA", "COMPACT_PROXY_TOKEN", "COMPACT_TEST_SOAK", "COMPACT_VIEW_TOKEN"})
_EVERY_FIELD = "`compact config show` lists every field and its value"


def file_in_folder() -> Path | None:
    """Return the file of settings in the current folder, if there is one."""
    return next((Path(name) for name in FILE_NAMES if Path(name).is_file()), None)


def unread_file_notice() -> str:
    """Return a sentence about the file in the current folder, for settings that no file was read for.

    It is not read unasked: an agent may run in a folder that is not its owner's.
    """
    file = file_in_folder()
    return f"{file} was not read: CompactConfig.load({str(file)!r}) reads it, as commands do" if file else ""


def read_file(path: Path) -> dict[str, Any]:
    """Return the settings in a YAML or JSON file."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}", hint="check the path and its permissions") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8 text", hint="save it as YAML or JSON") from None
    try:
        data = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    except (ValueError, yaml.YAMLError) as error:
        place = getattr(error, "problem_mark", None)
        line = place.line + 1 if place else getattr(error, "lineno", None)
        where = f" (line {line})" if line else ""
        raise ConfigError(f"{path} is not valid YAML or JSON{where}", hint="fix the syntax there") from None
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise ConfigError(f"{path} holds a {type(data).__name__}, not settings", hint="use `name: value` lines")
    return cast(dict[str, Any], data)


def from_environment(model: type[BaseModel]) -> dict[str, Any]:
    """Return the settings in `COMPACT_*` variables, nested as in a file."""
    settings: dict[str, Any] = {}
    for names, path, field in (*environment_names(model), *former_names(model)):
        value = next((os.environ[name] for name in names if name in os.environ), None)
        if value is not None:
            section = settings
            for step in path[:-1]:
                section = section.setdefault(step, {})
            section[path[-1]] = _parsed(value, field)
    return settings


class Variable(NamedTuple):
    """The environment variables of a setting, its path in a file, and its field."""

    names: tuple[str, ...]
    path: tuple[str, ...]
    field: FieldInfo


# For settings that are a field of an object by now: the object checks them.
_ANY_VALUE = FieldInfo(annotation=object)


def environment_names(model: type[BaseModel]) -> Iterator[Variable]:
    """Yield for each field its variables, its path and itself.

    `COMPACT_POLICY__TRIGGER_PCT` always works, `COMPACT_TRIGGER_PCT` where no other field has that name.
    """
    yield from _named(list(_leaves(model)), ())


def former_names(model: type[BaseModel]) -> Iterator[Variable]:
    """Yield the same for settings that have another name or place by now."""
    leaves = list(_leaves(model))
    yield from _named(list(_former_leaves(model)), tuple(path[-1] for path, _ in leaves))


def unknown_variables(model: type[BaseModel]) -> Iterator[tuple[str, str]]:
    """Yield each `COMPACT_*` variable that is no setting, and the nearest that is one, or an empty text."""
    given = sorted(name for name in os.environ if name.startswith(ENV_PREFIX) and name not in NO_SETTINGS)
    if not given:  # as nearly everywhere, each time that a manager is made
        return
    known = [name for variable in environment_names(model) for name in variable.names]
    former = {name for variable in former_names(model) for name in variable.names}
    for name in given:
        if name not in former.union(known):
            yield name, next(iter(get_close_matches(name, known, n=1, cutoff=0.8)), "")


def misspelt_variables_notice(model: type[BaseModel]) -> str:
    """Return a sentence about the variables that are no settings but almost look like one."""
    return "; ".join(
        f"the variable {name} is not a setting; did you mean {meant}?"
        for name, meant in unknown_variables(model)
        if meant
    )


def _named(leaves: Sequence[tuple[tuple[str, ...], FieldInfo]], taken: tuple[str, ...]) -> Iterator[Variable]:
    uses = Counter([*(path[-1] for path, _ in leaves), *taken])
    for path, field in leaves:
        full = ENV_PREFIX + "__".join(path).upper()
        short = ENV_PREFIX + path[-1].upper()
        names = (full, short) if uses[path[-1]] == 1 and short != full else (full,)
        yield Variable(names, path, field)


def _former_leaves(model: type[BaseModel], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], FieldInfo]]:
    renamed: Mapping[str, str] = getattr(model, "renamed", {})
    moved: Mapping[str, str] = getattr(model, "moved", {})
    yield from (((*above, old), model.model_fields[new]) for old, new in renamed.items())
    yield from (((*above, old), _ANY_VALUE) for old in moved)
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from _former_leaves(kind, (*above, name))
            if above == ("strategies",):
                yield (*above, name, "enabled"), _ANY_VALUE
    if above == ("strategies",):
        yield (*above, "drop", "enabled"), _ANY_VALUE


def _leaves(model: type[BaseModel], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], FieldInfo]]:
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from _leaves(kind, (*above, name))
        else:
            yield (*above, name), field


def _parsed(value: str, field: FieldInfo) -> Any:
    """Parse lists and tables, which are JSON or words with commas between; the model converts all else."""
    if field is _ANY_VALUE:
        return yaml.safe_load(value)
    kind = str(field.annotation)
    if kind.startswith(("tuple", "dict", "frozenset")):
        try:
            return json.loads(value)
        except ValueError:
            return [word.strip() for word in value.split(",") if word.strip()]
    return None if value.lower() in ("", "none", "null") and "None" in kind else value


def merged(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Merge layers, of which later ones overrule earlier ones, field by field."""
    result: dict[str, Any] = {}
    for layer in layers:
        for name, value in layer.items():
            standing = result.get(name)
            if isinstance(standing, dict) and isinstance(value, Mapping):
                result[name] = merged(cast(dict[str, Any], standing), cast(Mapping[str, Any], value))
            else:
                result[name] = value
    return result


def check_version(settings: Mapping[str, Any]) -> None:
    """Refuse settings of a version that this build does not know."""
    version = str(settings.get("version", CONFIG_VERSION))
    if version != CONFIG_VERSION:
        hint = f"this build reads {CONFIG_VERSION}; upgrade compact-context for newer files"
        raise ConfigError(f"version {version} of the configuration is not known", field="version", hint=hint)


def warn_renamed(old: str, new: str) -> None:
    """Warn that a key has another name by now."""
    warnings.warn(f"the setting {old} is now {new}", DeprecationWarning, stacklevel=_caller_level())


def warn_moved(old: str, place: str) -> None:
    """Warn that a key is a field of an object by now."""
    message = f"{old} is no setting any more: use {place}"
    warnings.warn(message, DeprecationWarning, stacklevel=_caller_level())


def _caller_level() -> int:
    """Return how far up the line is that wrote the setting: outside of this configuration, and of pydantic."""
    level, frame = 0, inspect.currentframe()
    while frame and frame.f_globals.get("__name__", "").startswith(("compact.config", "pydantic")):
        level, frame = level + 1, frame.f_back
    return level


def is_number(field: FieldInfo) -> bool:
    """Return True if a setting is a number, or a number or nothing."""
    kind: Any = field.annotation
    return kind in (int, float) or bool({int, float} & set(get_args(kind)) and bool not in get_args(kind))


def contradiction(
    lower: tuple[str, float], upper: tuple[str, float], *, is_default: bool = False
) -> PydanticCustomError:
    """Return the error for a setting that must be below another one, with the paths and values of both."""
    (path, value), (other, limit) = lower, upper
    relation = "must be below" if value == limit else "is above"
    origin = ", the default" if is_default else ""
    message = (
        f"{path} ({_figure(value)}) {relation} {other} ({_figure(limit)}{origin}): lower the first or raise the second"
    )
    return PydanticCustomError("contradiction", "{message}", {"message": message, "path": path})


def _figure(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value}"


def explain(error: ValidationError, model: type[BaseModel], settings: Mapping[str, Any]) -> ConfigError:
    """Say which of the settings is wrong, what it may be, what it was, and which variable set it."""
    lines = [_explained(problem, model) for problem in error.errors(include_url=False)]
    first = error.errors()[0]
    field = ".".join(str(step) for step in first["loc"])
    if first["type"] == "contradiction":
        field = first.get("ctx", {}).get("path", field)
    variable = _variable_of(field, model, settings)
    hint = f"the environment variable {variable} sets it" if variable else _EVERY_FIELD
    return ConfigError("; ".join(lines), field=field, hint=hint)


def _variable_of(field: str, model: type[BaseModel], settings: Mapping[str, Any]) -> str:
    """Return the variable that a setting is from; nothing if it is from elsewhere."""
    for variable in environment_names(model):
        name = next((name for name in variable.names if name in os.environ), "")
        path = ".".join(variable.path)
        if name and (field == path or field.startswith(f"{path}.")):
            value: Any = settings
            for step in variable.path:
                value = value.get(step) if is_mapping(value) else None
            # Code overrules a variable: then the variable is not to blame.
            return name if value == _parsed(os.environ[name], variable.field) else ""
    return ""


def _explained(problem: Mapping[str, Any], model: type[BaseModel]) -> str:
    if problem["type"] == "contradiction":
        return str(problem["msg"])
    path = ".".join(str(step) for step in problem["loc"]) or "configuration"
    if problem["type"] == "extra_forbidden":
        return f"{path} is not a known setting{_meant(model, problem['loc'])}"
    got = problem["input"] if problem["type"] != "value_error" else None
    return f"{path} {_expected(problem, model)}" + (
        f", not {got!r}{_as_share(got, problem, model)}" if got is not None else ""
    )


def _expected(problem: Mapping[str, Any], model: type[BaseModel]) -> str:
    """Return what a setting must be."""
    field = _field_at(model, problem["loc"])
    match problem["type"]:
        case "string_too_short":
            return "must not be empty"
        case "string_pattern_mismatch" if field and field.description:
            return f"must be {field.description.removesuffix('.')}"
        case "value_error":  # What a check of ours says is more than the range.
            allowed = ""
        case _:
            allowed = _range(field)
    said = str(problem["msg"]).removeprefix("Value error, ").replace("Input s", "s", 1)
    return f"must be {allowed}" if allowed else said


def _as_share(got: Any, problem: Mapping[str, Any], model: type[BaseModel]) -> str:
    """Return how a percentage is written, where a share was expected and `85` or `"85%"` was given."""
    try:
        percent = float(str(got).strip().removesuffix("%"))
    except ValueError:
        return ""
    is_share = _range(_field_at(model, problem["loc"])) == "0.0-1.0"
    return f"; {percent:g}% is {percent / 100:g}" if is_share and 10 <= percent <= 100 else ""


def _meant(model: type[BaseModel], path: tuple[Any, ...]) -> str:
    """Return the setting that a name was probably meant for: in its own section, or by the same name in another."""
    name = str(path[-1])
    nearest = [".".join((*map(str, path[:-1]), one)) for one in get_close_matches(name, _siblings(model, path), n=1)]
    elsewhere = [".".join(leaf) for leaf, _ in _leaves(model) if leaf[-1] == name]
    meant = nearest or elsewhere
    return f"; did you mean {' or '.join(meant)}?" if meant else ""


def _siblings(model: type[BaseModel], path: tuple[Any, ...]) -> list[str]:
    """Return the fields of the section that a path leads into."""
    for step in path[:-1]:
        field = model.model_fields.get(str(step))
        if field is None or not (isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)):
            return []
        model = field.annotation
    return list(model.model_fields)


def _field_at(model: type[BaseModel], path: tuple[Any, ...]) -> FieldInfo | None:
    """Return the field that a path leads to; None if there is none."""
    field: FieldInfo | None = None
    for step in path:
        field = model.model_fields.get(str(step))
        if field is None:
            return None
        annotation: object = field.annotation
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            model = annotation
    return field


def _range(field: FieldInfo | None) -> str:
    """Return the allowed range of a number, from the field's own limits."""
    limits: dict[str, Any] = {}
    for rule in field.metadata if field else ():
        limits.update(
            {name: getattr(rule, name) for name in ("ge", "gt", "le") if getattr(rule, name, None) is not None}
        )
    if not limits:
        return ""
    number = float if field and field.annotation is float else int
    high = f"{number(limits['le'])}" if "le" in limits else ""
    if "gt" in limits:
        return f"above {number(limits['gt'])}" + (f" and at most {high}" if high else "")
    low = number(limits.get("ge", 0))
    return f"{low}-{high}" if high else f"at least {low}"
