"""`compact doctor`: is everything here that Compact needs?"""

from __future__ import annotations

import difflib
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from compact import __version__
from compact.cli import screen
from compact.cli.options import ConfigFile
from compact.cli.settings import config_file, load_config
from compact.core.errors import CompactError

if TYPE_CHECKING:
    from compact.config import CompactConfig

_DISTRIBUTION = "compact-context"
_OLDEST_PYTHON = (3, 11)
# Two tokens in every published vocabulary of OpenAI.
_KNOWN_TEXT, _KNOWN_TOKENS = "hello world", 2
# Where the providers' own packages look for a key.
_KEYS = {"openai": ("OPENAI_API_KEY",), "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")}
# Read by the benchmarks.
_NO_SETTINGS = frozenset({"COMPACT_DATA"})
_STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report."""

    level: str
    topic: str
    text: str


def doctor(config: ConfigFile = None) -> None:
    """Check this installation and its settings.

    Nothing is sent anywhere, and no key is printed. Exit code 1 if something fails.
    """
    checks: tuple[Callable[[], Iterator[Finding]], ...] = (
        _python,
        _installation,
        lambda: _settings(config),
        _environment,
        _directory,
        _terminal,
    )
    findings = [finding for check in checks for finding in check()]
    width = max(len(finding.topic) for finding in findings)
    for finding in findings:
        _show(finding, width)
    if any(finding.level == "fail" for finding in findings):
        raise typer.Exit(1)


def _show(finding: Finding, width: int) -> None:
    from rich.text import Text

    level = (f"{finding.level:<4}", _STYLES[finding.level])
    text = Text.assemble(level, f"  {finding.topic:<{width}}  {screen.printable(finding.text)}")
    screen.console().print(text, soft_wrap=True)


def _python() -> Iterator[Finding]:
    enough = sys.version_info >= _OLDEST_PYTHON
    needed = "" if enough else f"; {'.'.join(map(str, _OLDEST_PYTHON))} or newer is needed"
    yield Finding("ok" if enough else "fail", "python", f"{platform.python_version()} at {sys.executable}{needed}")


def _installation() -> Iterator[Finding]:
    try:
        installed = version(_DISTRIBUTION)
    except PackageNotFoundError:
        yield Finding("warn", "compact", f"{__version__}, run from a folder: {_DISTRIBUTION} is not installed")
        return
    if installed == __version__:
        yield Finding("ok", "compact", __version__)
    else:
        yield Finding("warn", "compact", f"{__version__} is running, but {installed} is installed; install it again")


def _settings(path: Path | None) -> Iterator[Finding]:
    file = config_file(path)
    try:
        settings = load_config(path)
    except CompactError as error:
        yield Finding("fail", "config", f"{error.message}; {error.hint}")
        return
    yield Finding("ok", "config", f"read from {file}" if file else "defaults; there is no ./compact.yaml")
    yield _token_counter(settings)
    yield from _summaries(settings)


def _token_counter(settings: CompactConfig) -> Finding:
    from compact.tokens import get_tokenizer

    started = time.perf_counter()
    try:
        tokenizer = get_tokenizer(settings.model, settings.tokenizer)
        counted = tokenizer.count_text(_KNOWN_TEXT)
    except CompactError as error:
        return Finding("fail", "tokens", f"{error.message}; {error.hint}")
    took = f"loaded in {1000 * (time.perf_counter() - started):,.0f} ms"
    if not tokenizer.is_exact:
        return Finding("ok", "tokens", f"{tokenizer.name}, estimated, for {settings.model}; {took}")
    plug = "toktok" if find_spec("toktok") else "tiktoken"
    right = counted == _KNOWN_TOKENS
    result = f"{_KNOWN_TEXT!r} is {counted} tokens" + ("" if right else f", not {_KNOWN_TOKENS}")
    text = f"{tokenizer.name} by {plug}, exact, for {settings.model}; {result}; {took}"
    return Finding("ok" if right else "fail", "tokens", text)


def _summaries(settings: CompactConfig) -> Iterator[Finding]:
    """Who writes summaries; if that is a model, whether it can be asked."""
    if "summarize" not in settings.strategies.enabled:
        yield Finding("ok", "summaries", "switched off: only the free strategies run")
        return
    if not settings.summarizer.uses_model:
        yield Finding("ok", "summaries", "written by code: no model is asked, no key is needed")
        return
    from compact.assembly import build_summarizer
    from compact.redaction import Redactor

    try:
        build_summarizer(settings, Redactor(), lambda event: None)
    except CompactError as error:
        yield Finding("fail", "summaries", f"{error.message}; {error.hint}")
        return
    yield from _asked_model(settings)


def _asked_model(settings: CompactConfig) -> Iterator[Finding]:
    """The model that writes summaries: by which package, where, in how large a window, and with which key."""
    from compact.assembly import summary_provider, summary_window

    own, notices = settings.summarizer, list[str]()
    model = own.model or settings.model
    provider = summary_provider(settings)
    window = summary_window(settings, model, lambda event: notices.append(str(getattr(event, "message", ""))))
    where = f" at {_without_secrets(own.base_url)}" if own.base_url else ""
    text = f"written by {model}, through {provider} {version(provider)}{where}, in a window of {window:,} tokens"
    yield Finding("ok", "summaries", text)
    for notice in notices:
        yield Finding("warn", "summaries", notice)
    if own.provider == "auto" and not own.base_url and ("/" in model or not _home(model)):
        hint = "set summarizer.provider to litellm, or summarizer.base_url"
        yield Finding("warn", "summaries", f"{model!r} would be looked for at {provider}: {hint}")
    yield _key(settings, provider)


def _home(model: str) -> str:
    """The provider of a model, if it is one whose own package we use."""
    from compact.tokens import model_info

    provider = model_info(model).provider.value
    return provider if provider in _KEYS else ""


def _key(settings: CompactConfig, provider: str) -> Finding:
    """Where the key of the summariser's model is; never the key itself."""
    own = settings.summarizer
    if own.api_key_env or own.api_key:
        return Finding("ok", "summaries", f"its key is in {own.api_key_env or 'summarizer.api_key'}")
    names = _KEYS.get(provider, ())
    found = next((name for name in names if os.environ.get(name)), "")
    if found:
        return Finding("ok", "summaries", f"its key is in {found}")
    if provider == "litellm":
        return Finding("ok", "summaries", "litellm looks for its key by itself")
    if provider == "openai" and own.base_url:
        return Finding("ok", "summaries", "no key is set: the server is asked without one")
    return Finding("warn", "summaries", f"{names[0]} is not set: no summary will come, only the facts that code keeps")


def _without_secrets(url: str) -> str:
    """A URL without user, password and query."""
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _environment() -> Iterator[Finding]:
    from compact.config import CompactConfig
    from compact.config_sources import ENV_PREFIX, environment_names

    known = [name for names, _, _ in environment_names(CompactConfig) for name in names]
    given = sorted(name for name in os.environ if name.startswith(ENV_PREFIX) and name not in _NO_SETTINGS)
    unknown = [name for name in given if name not in known]
    for name in unknown:
        nearest = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
        meant = f"; did you mean {nearest[0]}?" if nearest else "; `compact config show` lists every setting"
        yield Finding("warn", "environment", f"{name} is not a setting{meant}")
    if not unknown:
        used = ", ".join(given) or f"no {ENV_PREFIX}* variable is set"
        yield Finding("ok", "environment", used)


def _directory() -> Iterator[Finding]:
    try:
        with tempfile.TemporaryFile(dir="."):
            pass
    except OSError as error:
        text = f"cannot write to the current directory ({error.strerror}): archives and state need a path elsewhere"
        yield Finding("warn", "directory", text)
    else:
        yield Finding("ok", "directory", f"{os.getcwd()} can be written to")


def _terminal() -> Iterator[Finding]:
    console = screen.console()
    if not screen.is_live(sys.stdout):
        text = "not a terminal: output is plain"
    elif console.no_color or not console.color_system:
        text = f"{console.width} columns, without colours"
    else:
        text = f"{console.width} columns, {console.color_system} colours"
    yield Finding("ok", "terminal", text)
