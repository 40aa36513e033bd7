"""Events for whoever watches: through `logging` where that is set up, else as calm lines on stderr.

A library does not print by itself: without a terminal and without a wish, only warnings are written, as `logging`
would do it.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

from compact.core.engine.events import CompactionCompletedEvent, CompactionErrorEvent, CompactionEvent, NoticeEvent
from compact.telemetry.fitting import one_line
from compact.telemetry.log import LoggingEventEmitter, line_of

_log = logging.getLogger("compact")
_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING}
_BAR_CELLS = 10


class ConsoleEmitter:
    """One line for each compaction and each error; in colour on a terminal, plain when piped.

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
        stream = self._stream or sys.stderr
        if stream is None:  # a windowed program has none
            return
        is_terminal = stream.isatty()
        level, line = line_of(event)
        if level < _LEVELS.get(self._level, logging.INFO if is_terminal else logging.WARNING):
            return
        text = one_line(str(self._redact(line or event.to_dict())))
        if is_terminal:
            self._show(event, text, stream)
        else:
            stream.write(f"{_clock(event)} compact{_session(event)} {_word(event)} {text}\n")

    def emit(self, event: CompactionEvent) -> None:
        """The same, by its other name."""
        self(event)

    def _show(self, event: CompactionEvent, text: str, stream: TextIO) -> None:
        from rich.console import Console  # only where there is a terminal
        from rich.text import Text

        word = _word(event)
        style = {"error": "red", "notice": "yellow", "compacted": "green"}.get(word, "dim")
        line = Text.assemble(
            (_clock(event), "dim"), " ", (f"{word:<9}", style), (f"{_session(event)} ", "bold"), _bar(event), text
        )
        Console(file=stream, highlight=False, soft_wrap=True).print(line)


def _clock(event: CompactionEvent) -> str:
    return time.strftime("%H:%M:%S", time.localtime(event.ended_at or time.time()))


def _session(event: CompactionEvent) -> str:
    return f" [{one_line(event.session_id)}]" if event.session_id else ""


def _word(event: CompactionEvent) -> str:
    match event:
        case CompactionErrorEvent():
            return "error"
        case NoticeEvent():
            return "notice"
        case CompactionCompletedEvent():
            return "compacted"
        case _:
            return event.name.removeprefix("compact.")


def _bar(event: CompactionEvent) -> str:
    """What is left of a prompt, as a bar."""
    if not isinstance(event, CompactionCompletedEvent) or not event.tokens_before:
        return ""
    cells = round(_BAR_CELLS * min(1.0, event.tokens_after / event.tokens_before))
    return "█" * cells + "░" * (_BAR_CELLS - cells) + " "
