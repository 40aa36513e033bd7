"""The parameters of a model call, and which of them an endpoint turned out not to take."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from typing import Any

_log = logging.getLogger("compact")
# A limit cuts off a model that thinks before it writes, so it goes when an answer was cut off.
_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")


class CallSettings:
    """What is sent with every call; safe between threads.

    `defaults` (a seed, a temperature, JSON) are sent until the endpoint rejects them, `options` are the user's own.
    """

    def __init__(self, defaults: Mapping[str, Any] | None = None, options: Mapping[str, Any] | None = None) -> None:
        self._defaults, self._options = dict(defaults or {}), dict(options or {})
        self._known = frozenset(self._defaults)
        self._lock = threading.Lock()

    def current(self) -> dict[str, Any]:
        """Return what to send now."""
        with self._lock:
            return {**self._defaults, **self._options}

    def drop(self, name: str) -> bool:
        """Send a default no longer; return False if it is none. Each of several threads that find out may ask again."""
        with self._lock:
            if name not in self._known or name in self._options:
                return False
            is_first = self._defaults.pop(name, self) is not self
        if is_first:
            _log.info("the summariser's endpoint does not take %s: it is not sent any more", name)
        return True

    def drop_limit(self, sent: Mapping[str, Any]) -> bool:
        """Send no limit on the answer any longer; return False if none was sent."""
        limits = [name for name in _LIMITS if name in sent]
        with self._lock:
            dropped = [name for name in limits if self._options.pop(name, self) is not self]
        if dropped:
            _log.info("the summariser's answer was cut off: %s is not sent any more", ", ".join(dropped))
        return bool(limits)

    def fingerprint(self) -> str:
        """Return the settings as a text, as they were asked for."""
        return repr(sorted(self.current().items(), key=lambda entry: entry[0]))
