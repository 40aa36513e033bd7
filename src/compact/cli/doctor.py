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
from typing import TYPE_CHECKING

import typer

from compact import __version__
from compact.cli import screen
from compact.cli.settings import config_file, load_config
from compact.core.errors import CompactError

if TYPE_CHECKING:
    from compact.config import CompactConfig

_DISTRIBUTION = "compact-context"
_OLDEST_PYTHON = (3, 11)
# Two tokens in every published vocabulary of OpenAI.
_KNOWN_TEXT, _KNOWN_TOKENS = "hello world", 2
_STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report."""

    level: str
    topic: str
    text: str


def doctor() -> None:
    """Check this installation; exit code 1 if something fails."""
    checks: tuple[Callable[[], Iterator[Finding]], ...] = (
        _python,
        _installation,
        _settings,
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


def _settings() -> Iterator[Finding]:
    file = config_file(None)
    try:
        settings = load_config()
    except CompactError as error:
        yield Finding("fail", "config", f"{error.message}; {error.hint}")
        return
    yield Finding("ok", "config", f"read from {file}" if file else "defaults; there is no ./compact.yaml")
    yield _token_counter(settings)


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


def _environment() -> Iterator[Finding]:
    from compact.config import CompactConfig
    from compact.config_sources import ENV_PREFIX, environment_names

    known = [name for names, _, _ in environment_names(CompactConfig) for name in names]
    given = sorted(name for name in os.environ if name.startswith(ENV_PREFIX))
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
