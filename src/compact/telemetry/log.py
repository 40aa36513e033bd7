"""Events as lines for people: through the standard `logging` module, or on stderr where that is not set up.

A library does not print by itself: without a terminal, and unless a level is asked for, only warnings are written, as
`logging` would do it.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

from compact.core.engine.events import CompactionCompletedEvent, CompactionEvent
from compact.telemetry.truncation import one_line

_log = logging.getLogger("compact")
_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.WARNING,  # the agent goes on after every error of a compaction
}
_STYLES = {"error": "red", "warning": "yellow"}
# Chosen: a share can be read off it, and the sentence still fits into the line.
_BAR_CELLS = 10


class LoggingEventEmitter:
    """Logs each event under the logger `compact`, without secrets; what changed a prompt is info, the rest debug."""

    def __init__(self, redact: Callable[[Any], Any] = lambda value: value, *, log: logging.Logger = _log) -> None:
        self._redact, self._log = redact, log

    def __call__(self, event: CompactionEvent) -> None:
        level = _LEVELS[event.spec.severity]
        if not self._log.isEnabledFor(level):
            return
        text = _line(event, self._redact)
        if event.session_id:
            self._log.log(level, "[%s] %s", one_line(event.session_id), text)
        else:
            self._log.log(level, "%s", text)

    def emit(self, event: CompactionEvent) -> None:
        """Do the same as a call."""
        self(event)


class ConsoleEmitter:
    """Writes a line for each compaction and each error; in colour on a terminal, without where it is piped.

    `level` is `debug`, `info`, `warning`, or `auto`: info on a terminal, warning elsewhere.
    """

    def __init__(
        self,
        redact: Callable[[Any], Any] = lambda value: value,
        *,
        level: str = "auto",
        stream: TextIO | None = None,
    ) -> None:
        self._redact, self._level, self._stream = redact, level, stream
        self._logging = LoggingEventEmitter(redact)

    def __call__(self, event: CompactionEvent) -> None:
        if self._stream is None and _log.hasHandlers():
            self._logging(event)
            return
        stream: TextIO | None = self._stream or sys.stderr
        if stream is None:  # a windowed program has none
            return
        level, least = _LEVELS[event.spec.severity], _LEVELS.get(self._level)
        if level < (logging.INFO if least is None else least):  # most events, and asking a stream what it is takes time
            return
        is_terminal = stream.isatty()
        if least is None and level < logging.WARNING and not is_terminal:
            return
        text = _line(event, self._redact).removeprefix(f"{_label(event)}, ")  # the label says it
        if is_terminal:
            self._write_coloured(event, text, stream)
        else:
            stream.write(f"{_clock(event)} compact{_session(event)} {_label(event)} {text}\n")

    def emit(self, event: CompactionEvent) -> None:
        """Do the same as a call."""
        self(event)

    def _write_coloured(self, event: CompactionEvent, text: str, stream: TextIO) -> None:
        from rich.console import Console  # only where there is a terminal
        from rich.text import Text

        is_compaction = isinstance(event, CompactionCompletedEvent)
        style = _STYLES.get(event.spec.severity, "green" if is_compaction else "dim")
        bar = _bar(event) if is_compaction else ""
        line = Text.assemble(
            (_clock(event), "dim"), " ", (f"{_label(event):<9}", style), (f"{_session(event)} ", "bold"), bar, text
        )
        Console(file=stream, highlight=False, soft_wrap=True).print(line)


def _line(event: CompactionEvent, redact: Callable[[Any], Any]) -> str:
    """Return the sentence about an event; at the level of debugging, with all its fields."""
    data = event.to_dict()
    sentence = str(redact(event.spec.line(data)))
    if event.spec.severity == "debug":
        sentence = f"{sentence} {json.dumps(redact(data), ensure_ascii=False, default=str)}"
    return one_line(sentence)


def _clock(event: CompactionEvent) -> str:
    return time.strftime("%H:%M:%S", time.localtime(event.ended_at or time.time()))


def _session(event: CompactionEvent) -> str:
    return f" [{one_line(event.session_id)}]" if event.session_id else ""


def _label(event: CompactionEvent) -> str:
    return "compacted" if isinstance(event, CompactionCompletedEvent) else event.name.removeprefix("compact.")


def _bar(event: CompactionCompletedEvent) -> str:
    """Return what is left of a prompt, as a bar."""
    if not event.tokens_before:
        return ""
    cells = round(_BAR_CELLS * min(1.0, event.tokens_after / event.tokens_before))
    return "█" * cells + "░" * (_BAR_CELLS - cells) + " "
