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

CONFIG_VERSION = "1.0"
ENV_PREFIX = "COMPACT_"
# The file of settings that commands read from the folder they are run in.
FILE_NAMES = ("compact.yaml", "compact.yml", "compact.json")


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


def explain(error: ValidationError, model: type[BaseModel]) -> ConfigError:
    """Say which field is wrong, what it may be, and what it was."""
    lines = [_explained(problem, model) for problem in error.errors(include_url=False)]
    first = error.errors()[0]
    field = ".".join(str(step) for step in first["loc"])
    if first["type"] == "contradiction":
        field = first.get("ctx", {}).get("path", field)
    return ConfigError("; ".join(lines), field=field, hint="`compact config show` lists every field and its value")


def _explained(problem: Mapping[str, Any], model: type[BaseModel]) -> str:
    if problem["type"] == "contradiction":
        return str(problem["msg"])
    path = ".".join(str(step) for step in problem["loc"]) or "configuration"
    if problem["type"] == "extra_forbidden":
        nearest = get_close_matches(str(problem["loc"][-1]), _siblings(model, problem["loc"]), n=1)
        return f"{path} is not a known setting" + (f"; did you mean {nearest[0]}?" if nearest else "")
    # What a check of ours says is more than the range.
    allowed = _range(model, problem["loc"]) if problem["type"] != "value_error" else ""
    expected = (
        f"must be {allowed}" if allowed else problem["msg"].removeprefix("Value error, ").replace("Input s", "s", 1)
    )
    got = problem["input"] if problem["type"] != "value_error" else None
    return f"{path} {expected}" + (f", not {got!r}" if got is not None else "")


def _siblings(model: type[BaseModel], path: tuple[Any, ...]) -> list[str]:
    """Return the fields of the section that a path leads into."""
    for step in path[:-1]:
        field = model.model_fields.get(str(step))
        if field is None or not (isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)):
            return []
        model = field.annotation
    return list(model.model_fields)


def _range(model: type[BaseModel], path: tuple[Any, ...]) -> str:
    """Return the allowed range of a number, from the field's own limits."""
    field: FieldInfo | None = None
    for step in path:
        field = model.model_fields.get(str(step))
        if field is None:
            return ""
        annotation: object = field.annotation
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            model = annotation
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
