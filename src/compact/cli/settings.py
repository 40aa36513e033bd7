"""Loads the configuration of a command, and says where a value was set."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compact.cli.screen import notice
from compact.core.errors import ConfigError

if TYPE_CHECKING:
    from compact.config import CompactConfig


def config_file(path: Path | None) -> Path | None:
    """Return the file that was named, else the configuration file in the current directory, if there is one."""
    from compact.config_sources import file_in_folder

    return path or file_in_folder()


def load_config(
    path: Path | None = None, *, model: str | None = None, window: int | None = None, store: str | None = None
) -> CompactConfig:
    """Return the configuration of a command: options before environment before file before defaults."""
    from compact.config import CompactConfig

    state = None if store is None else {"url": store}
    options: dict[str, Any] = {"model": model, "max_context_tokens": window, "state": state}
    given = {name: value for name, value in options.items() if value is not None}
    file = config_file(path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            config = CompactConfig.load(file, **given) if file else CompactConfig(**given)
        except ConfigError as error:
            raise _with_origin(error, file) from None
    for warning in caught:
        notice(str(warning.message), label="note", style="yellow")
    return config


def load_agent_config(
    path: Path | None, *, model: str | None = None, window: int | None = None, store: str | None = None
) -> CompactConfig:
    """Return the same for a command that does what an agent would do, and say which file was found for it.

    An agent reads no file unless its code names one.
    """
    config = load_config(path, model=model, window=window, store=store)
    if config.file and path is None:
        notice(f"settings from {config.file}; an agent reads them with CompactConfig.load({str(config.file)!r})")
    return config


def for_recorded_model(config: CompactConfig, model: str) -> CompactConfig:
    """Return the settings for the model that a transcript was recorded with, unless one is set or it has no price."""
    if not model or "model" in config.model_fields_set:
        return config
    if not recorded_model(config, model):
        notice(f"for {config.model}: nothing is known of the recorded model, {model}; --model names another")
        return config
    notice(f"for {model}, as recorded; --model names another")
    return config.model_copy(update={"model": model})


def recorded_model(config: CompactConfig, model: str) -> str:
    """Return the model that a transcript was recorded with; "" if one is set, or it has no price."""
    from compact.pricing import model_prices

    is_taken = bool(model) and "model" not in config.model_fields_set and model_prices(model) is not None
    return model if is_taken else ""


def in_memory(config: CompactConfig, *, enabled: bool | None = None) -> CompactConfig:
    """Return the same settings for a transcript file: nothing is stored, archived, exported or sent to a model.

    A summary by code is as long as that of the model it stands for. `enabled` replaces `policy.enabled`.
    """
    update: dict[str, Any] = {"state": config.state.model_copy(update={"url": "memory:"})}
    if enabled is not None:
        update["policy"] = config.policy.model_copy(update={"enabled": enabled})
    return without_side_effects(config).model_copy(update=update)


def without_prefetch(config: CompactConfig) -> CompactConfig:
    """Return the same settings without prefetching: a process that makes one call has no next one to prepare."""
    summarizer = config.summarizer.model_copy(update={"prefetch": "never"})
    return config.model_copy(update={"summarizer": summarizer})


def without_side_effects(config: CompactConfig) -> CompactConfig:
    """Return the same settings without exporter, archive, events and model: a command that reads needs none of them."""
    from compact.config import MODEL_SUMMARY_TOKENS

    state = config.state.model_copy(update={"events_days": 0})
    telemetry = config.telemetry.model_copy(update={"exporter": ("none",)})
    storage = config.storage.model_copy(update={"adapter": "none"})
    length = MODEL_SUMMARY_TOKENS if config.summarizer.uses_model else None
    written = {"kind": "extractive", "max_tokens": config.summarizer.max_tokens or length}
    summarizer = config.summarizer.model_copy(update=written)
    update = {"state": state, "telemetry": telemetry, "storage": storage, "summarizer": summarizer}
    return config.model_copy(update=update)


def environment_settings() -> Iterator[tuple[str, str]]:
    """Yield the settings that the environment sets: the dotted field, and the variable that does it."""
    from compact.config import CompactConfig
    from compact.config_sources import environment_names

    for names, path, _ in environment_names(CompactConfig):
        variable = next((name for name in names if name in os.environ), None)
        if variable:
            yield ".".join(path), variable


def _with_origin(error: ConfigError, file: Path | None) -> ConfigError:
    """Return the error with the file that it is in, unless a variable set the value: the error names that itself."""
    if file and error.field and error.field not in dict(environment_settings()):
        return ConfigError(f"{file}: {error.message}", field=error.field, hint=error.hint)
    return error
