"""`compact doctor`: checks the installation, the settings and the environment."""

from __future__ import annotations

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
_STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One line of the output: a check, how it ended, and what was found."""

    level: str
    topic: str
    text: str


def doctor(config: ConfigFile = None) -> None:
    """Check this installation and its settings.

    Nothing is sent over the network, and no key is printed. The exit code is 1 if a check fails.
    """
    checks: tuple[Callable[[], Iterator[CheckResult]], ...] = (
        _check_python,
        _check_installation,
        lambda: _check_settings(config),
        _check_environment,
        _check_directory,
        _check_terminal,
    )
    results = [result for check in checks for result in check()]
    width = max(len(result.topic) for result in results)
    for result in results:
        _show(result, width)
    if any(result.level == "fail" for result in results):
        raise typer.Exit(1)


def _show(result: CheckResult, width: int) -> None:
    from rich.text import Text

    level = (f"{result.level:<4}", _STYLES[result.level])
    text = Text.assemble(level, f"  {result.topic:<{width}}  {screen.printable(result.text)}")
    screen.console().print(text, soft_wrap=True)


def _check_python() -> Iterator[CheckResult]:
    enough = sys.version_info >= _OLDEST_PYTHON
    needed = "" if enough else f"; {'.'.join(map(str, _OLDEST_PYTHON))} or newer is needed"
    yield CheckResult("ok" if enough else "fail", "python", f"{platform.python_version()} at {sys.executable}{needed}")


def _check_installation() -> Iterator[CheckResult]:
    try:
        installed = version(_DISTRIBUTION)
    except PackageNotFoundError:
        yield CheckResult(
            "warn", "compact", f"{__version__} runs from a source folder: {_DISTRIBUTION} is not installed"
        )
        return
    if installed == __version__:
        yield CheckResult("ok", "compact", __version__)
    else:
        yield CheckResult(
            "warn", "compact", f"{__version__} is running, but {installed} is installed; install it again"
        )


def _check_settings(path: Path | None) -> Iterator[CheckResult]:
    file = config_file(path)
    try:
        settings = load_config(path)
    except CompactError as error:
        yield CheckResult("fail", "config", f"{error.message}; {error.hint}")
        return
    yield CheckResult("ok", "config", f"read from {file}" if file else "defaults; there is no ./compact.yaml")
    yield _check_tokenizer(settings)
    yield from _check_summarizer(settings)


def _check_tokenizer(settings: CompactConfig) -> CheckResult:
    from compact.tokens import get_tokenizer

    started = time.perf_counter()
    try:
        tokenizer = get_tokenizer(settings.model, settings.tokenizer)
        counted = tokenizer.count_text(_KNOWN_TEXT)
    except CompactError as error:
        return CheckResult("fail", "tokens", f"{error.message}; {error.hint}")
    took = f"loaded in {1000 * (time.perf_counter() - started):,.0f} ms"
    if not tokenizer.is_exact:
        return CheckResult("ok", "tokens", f"{tokenizer.name}, estimated, for {settings.model}; {took}")
    package = "toktok" if find_spec("toktok") else "tiktoken"
    right = counted == _KNOWN_TOKENS
    result = f"{_KNOWN_TEXT!r} is {screen.quantity(counted, 'token')}" + ("" if right else f", not {_KNOWN_TOKENS}")
    text = f"{tokenizer.name} by {package}, exact, for {settings.model}; {result}; {took}"
    return CheckResult("ok" if right else "fail", "tokens", text)


def _check_summarizer(settings: CompactConfig) -> Iterator[CheckResult]:
    """Check what writes summaries; if that is a model, whether it can be called."""
    if "summarize" not in settings.strategies.enabled:
        yield CheckResult("ok", "summaries", "switched off: only the free strategies run")
        return
    if not settings.summarizer.uses_model:
        yield CheckResult("ok", "summaries", "written by code: no model is called, no key is needed")
        return
    from compact.assembly.summaries import build_summarizer
    from compact.redaction import Redactor

    try:
        build_summarizer(settings, Redactor(), lambda event: None)
    except CompactError as error:
        yield CheckResult("fail", "summaries", f"{error.message}; {error.hint}")
        return
    yield from _check_model(settings)


def _check_model(settings: CompactConfig) -> Iterator[CheckResult]:
    """Check the model that writes summaries: its package, address, window and key."""
    from compact.assembly.summaries import summary_provider, summary_window

    own, notices = settings.summarizer, list[str]()
    model = own.model or settings.model
    provider = summary_provider(settings)
    window = summary_window(settings, model, lambda event: notices.append(str(getattr(event, "message", ""))))
    where = f" at {_without_credentials(own.base_url)}" if own.base_url else ""
    text = f"written by {model}, through {provider} {version(provider)}{where}, in a window of {window:,} tokens"
    yield CheckResult("ok", "summaries", text)
    for notice in notices:
        yield CheckResult("warn", "summaries", notice)
    if own.provider == "auto" and not own.base_url and ("/" in model or not _own_provider(model)):
        hint = "set summarizer.provider to litellm, or summarizer.base_url"
        yield CheckResult("warn", "summaries", f"{model!r} would be requested from {provider}: {hint}")
    yield _check_key(settings, provider)


def _own_provider(model: str) -> str:
    """Return the provider of a model if we use its own package, else an empty text."""
    from compact.tokens import model_info

    provider = model_info(model).provider.value
    return provider if provider in _KEYS else ""


def _check_key(settings: CompactConfig, provider: str) -> CheckResult:
    """Check where the key of the summariser's model is; the key itself is never printed."""
    own = settings.summarizer
    if own.api_key_env or own.api_key:
        return CheckResult("ok", "summaries", f"its key is in {own.api_key_env or 'summarizer.api_key'}")
    names = _KEYS.get(provider, ())
    found = next((name for name in names if os.environ.get(name)), "")
    if found:
        return CheckResult("ok", "summaries", f"its key is in {found}")
    if provider == "litellm":
        return CheckResult("ok", "summaries", "litellm finds its key itself")
    if provider == "openai" and own.base_url:
        return CheckResult("ok", "summaries", "no key is set: the server is called without one")
    name = next(iter(names), "its key")
    text = f"{name} is not set: the model cannot be asked, so code writes the summaries"
    return CheckResult("warn", "summaries", text)


def _without_credentials(url: str) -> str:
    """Return a URL without user, password and query."""
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _check_environment() -> Iterator[CheckResult]:
    from compact.config import CompactConfig
    from compact.config_sources import ENV_PREFIX, NO_SETTINGS, unknown_variables

    unknown = dict(unknown_variables(CompactConfig))
    for name, nearest in unknown.items():
        meant = f"; did you mean {nearest}?" if nearest else "; `compact config show` lists every setting"
        yield CheckResult("warn", "environment", f"{name} is not a setting{meant}")
    if not unknown:
        used = ", ".join(sorted(name for name in os.environ if name.startswith(ENV_PREFIX) and name not in NO_SETTINGS))
        yield CheckResult("ok", "environment", used or f"no {ENV_PREFIX}* variable is set")


def _check_directory() -> Iterator[CheckResult]:
    try:
        with tempfile.TemporaryFile(dir="."):
            pass
    except OSError as error:
        text = f"cannot write to the current directory ({error.strerror}): archives and state need a path elsewhere"
        yield CheckResult("warn", "directory", text)
    else:
        yield CheckResult("ok", "directory", f"{os.getcwd()} can be written to")


def _check_terminal() -> Iterator[CheckResult]:
    console = screen.console()
    if not screen.is_terminal(sys.stdout):
        text = "not a terminal: output is plain"
    elif console.no_color or not console.color_system:
        text = f"{console.width} columns, without colours"
    else:
        text = f"{console.width} columns, {console.color_system} colours"
    yield CheckResult("ok", "terminal", text)
