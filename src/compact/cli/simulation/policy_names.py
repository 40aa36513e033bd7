"""Finds the policy that a name on the command line means: `window`, `compact:trigger_pct=0.7`, `compact:own.yaml`."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compact.cli.settings import in_memory, without_prefetch
from compact.core.errors import CompactError

if TYPE_CHECKING:
    from compact.config import CompactConfig
    from compact.measuring.policies import Policy

COMPACT = "compact"
DEFAULT_POLICIES = ("none", "window", "clear", "langchain", COMPACT)
_FILES = (".yaml", ".yml", ".json")


class PolicyError(CompactError, ValueError):
    """A policy that there is not, or a setting in it that makes no sense."""

    code = "invalid_policy"


def find_policy(text: str, config: CompactConfig) -> Policy:
    """Return the policy of a name; `config` has the settings that ours start from."""
    from compact.measuring.framework_rules import FRAMEWORK_POLICIES
    from compact.measuring.policies import PLAIN_POLICIES, compact_policy

    known = {**PLAIN_POLICIES, **FRAMEWORK_POLICIES}
    name, _, given = text.partition(":")
    if name == COMPACT:
        about = f"Compact with {given.replace(',', ', ')}" if given else "Compact with its settings as they are"
        settings = without_prefetch(in_memory(_with_settings(config, given, text)))
        return compact_policy(text, settings, about=about)
    if name not in known:
        close = difflib.get_close_matches(name, [*known, COMPACT], n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        raise PolicyError(f"there is no policy {name!r}", hint=f"{hint}there are {', '.join(known)} and {COMPACT}")
    if given:
        raise PolicyError(
            f"the policy {name!r} takes no settings, but has {given!r}",
            hint="only compact does: compact:trigger_pct=0.7",
        )
    return known[name]


def _with_settings(config: CompactConfig, given: str, policy: str) -> CompactConfig:
    """Return the configuration with what a policy sets: `name=value,…`, or a file."""
    from compact.config import CompactConfig
    from compact.config_sources import merged, read_file

    if not given:
        return config
    if given.endswith(_FILES):
        settings = read_file(Path(given))
    else:
        settings = merged(*(_setting(part, policy) for part in given.split(",")))
    return CompactConfig.of(merged(config.given(), settings))


def _setting(part: str, policy: str) -> dict[str, Any]:
    """Return one `name=value` as a file would have it; a name need not say its section if no other has that name."""
    import yaml

    from compact.config import CompactConfig
    from compact.config_sources import ENV_PREFIX, environment_names

    name, equals, value = part.strip().partition("=")
    paths = {
        variable.removeprefix(ENV_PREFIX).lower().replace("__", "."): path
        for variables, path, _ in environment_names(CompactConfig)
        for variable in variables
    }
    if not equals:
        raise PolicyError(
            f"{part!r} in the policy {policy!r} sets nothing", hint="write name=value, such as trigger_pct=0.7"
        )
    if name not in paths:
        close = difflib.get_close_matches(name, paths, n=1)
        meant = f"did you mean {close[0]}? " if close else ""
        raise PolicyError(
            f"there is no setting {name!r}, which the policy {policy!r} sets",
            hint=f"{meant}`compact config show` lists all settings",
        )
    nested: Any = yaml.safe_load(value)
    for key in reversed(paths[name]):
        nested = {key: nested}
    return nested
