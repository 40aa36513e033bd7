"""Redactor: what goes out passes through here first."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from compact.core.messages.message import Message
from compact.redaction.custom import compile_patterns
from compact.redaction.nested import NestedRedaction
from compact.redaction.spans import replaced

CALLBACK_FAILED = "<REDACTED: callback failed>"
# Chosen: names and ids are shorter, and so many of them come again with the events of every call.
_SHORT_CHARS, _MOST_KNOWN = 64, 2_048


class Redactor:
    """Gives back copies without secrets; the input is never changed, and comes back itself if it holds none."""

    def __init__(
        self,
        enabled: bool = True,
        patterns: Iterable[str] = (),
        callback: Callable[[str], str] | None = None,
    ) -> None:
        self._is_enabled = enabled
        self._patterns = compile_patterns(patterns) if enabled else ()
        # Of a callback of the user nothing is taken for granted.
        self._callback: Callable[[str], object] | None = callback
        # Short texts of events in which no secret was found.
        self._known_clean: set[str] = set()

    @property
    def is_enabled(self) -> bool:
        """False if everything leaves as it is, which exporters must warn of."""
        return self._is_enabled

    def text(self, text: str) -> str:
        """Return a text with `<REDACTED>` in place of each secret; a name before it stays: `api_key=<REDACTED>`."""
        if not self._is_enabled:
            return text
        clean = replaced(text, self._patterns)
        return clean if self._callback is None else self._called_back(clean)

    def value(self, value: Any) -> Any:
        """Return data without secrets: in strings, in JSON inside strings, and under names such as `password`."""
        if not self._is_enabled:
            return value
        return NestedRedaction(self.text, reads_everything=bool(self._patterns or self._callback)).value(value)

    def event(self, data: Any) -> Any:
        """Return the data of an event without secrets: what `value` returns, without reading the same names again."""
        if not self._is_enabled or self._callback:  # a callback has the last word on every text, each time
            return self.value(data)
        return NestedRedaction(self._text_once, reads_everything=bool(self._patterns)).value(data)

    def _text_once(self, text: str) -> str:
        if text in self._known_clean:
            return text
        clean = self.text(text)
        if clean is text and len(text) <= _SHORT_CHARS:
            if len(self._known_clean) >= _MOST_KNOWN:
                self._known_clean.clear()
            self._known_clean.add(text)
        return clean

    def message(self, message: Message) -> Message:
        """Return a message without secrets; its role and ids stay, and JSON stays JSON."""
        return self.event(message)

    def _called_back(self, text: str) -> str:
        try:
            clean = self._callback(text) if self._callback else text
        except Exception:  # noqa: BLE001 - a callback of the user: its text must not leave
            return CALLBACK_FAILED
        # Whatever else it returns is a bug of its own, and the text may be what it failed to clean.
        return (text if clean == text else clean) if isinstance(clean, str) else CALLBACK_FAILED
