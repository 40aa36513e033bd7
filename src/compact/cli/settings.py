"""Finds the settings a command works with, and says where each came from."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compact.cli.screen import remark
from compact.core.errors import ConfigError

if TYPE_CHECKING:
    from compact.config import CompactConfig

FOUND_NAMES = ("compact.yaml", "compact.yml", "compact.json")


def config_file(path: Path | None) -> Path | None:
    """The file that was named, or the one that lies in the current directory."""
    return path or next((Path(name) for name in FOUND_NAMES if Path(name).is_file()), None)


def load_config(path: Path | None = None, *, model: str | None = None, window: int | None = None) -> CompactConfig:
    """The configuration of a command: its options over the environment over a file over the defaults."""
    from compact.config import CompactConfig

    options: dict[str, Any] = {"model": model, "max_context_tokens": window}
    given = {name: value for name, value in options.items() if value is not None}
    file = config_file(path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            config = CompactConfig.load(file, **given) if file else CompactConfig(**given)
        except ConfigError as error:
            raise _with_origin(error, file) from None
    for warning in caught:
        remark(str(warning.message), label="note", style="yellow")
    return config


def quiet(config: CompactConfig, *, enabled: bool | None = None) -> CompactConfig:
    """The same settings for a transcript that is only looked at: no exporter, no store, no archive.

    `enabled` overrules the policy's.
    """
    update: dict[str, Any] = {
        "telemetry": config.telemetry.model_copy(update={"exporter": "none"}),
        "state": config.state.model_copy(update={"url": "memory:"}),
        "storage": config.storage.model_copy(update={"adapter": "none"}),
    }
    if enabled is not None:
        update["policy"] = config.policy.model_copy(update={"enabled": enabled})
    return config.model_copy(update=update)


def environment_settings() -> Iterator[tuple[str, str]]:
    """The settings that the environment overrules: the dotted field, and the variable that does it."""
    from compact.config import CompactConfig
    from compact.config_sources import environment_names

    for names, path, _ in environment_names(CompactConfig):
        variable = next((name for name in names if name in os.environ), None)
        if variable:
            yield ".".join(path), variable


def _with_origin(error: ConfigError, file: Path | None) -> ConfigError:
    """Say where a wrong value was set: people look in the file while a variable overrules it."""
    variable = dict(environment_settings()).get(error.field)
    if variable:
        return ConfigError(error.message, field=error.field, hint=f"the environment variable {variable} sets it")
    if file and error.field:
        return ConfigError(f"{file}: {error.message}", field=error.field, hint=error.hint)
    return error
