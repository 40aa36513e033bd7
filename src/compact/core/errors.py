"""What Compact raises; `StoreError`, `VersionConflict` and `ArchiveError` are beside their sockets, in `core.audit`.

    CompactError
    ├── InsufficientBudget   the smallest legal prompt is still larger than the budget
    ├── InjectionTooLarge    an injector takes more tokens than it has reserved
    ├── ConfigError          a configuration that makes no sense
    ├── InvalidHistory       a history that cannot be read as messages
    ├── UnknownSession       a question about a session that never was
    └── SummaryFailed        no summary that can be used
        ├── SummaryEmpty            it says nothing
        ├── SummaryTruncated        it was cut off
        ├── SummaryEchoed           it is a copy of the question
        ├── SummaryRefused          the model would not write it
        ├── SummaryUnreadable       it is no summary
        ├── SummaryTooLong          it takes more tokens than it may
        ├── SummarizerUnavailable   the model could not be asked, or did not answer in time
        ├── SummarizerPaused        it failed too often and is left alone for a while
        └── SpendLimitReached       the session has spent what it may

`preflight` raises the first two and InvalidHistory, and with `on_failure: raise` what a summariser raised; the
manager's constructor raises ConfigError. Every other failure falls back and is reported as an event.
"""

from __future__ import annotations

from collections.abc import Mapping


class CompactError(Exception):
    """What went wrong, how much, and what to do about it."""

    code = "compact_error"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\nhint: {self.hint}" if self.hint else self.message


# Parts of a prompt that compaction never touches.
_PROTECTED = ("system", "developer", "pinned")
_ADVICE = {
    "protected": "reduce protected memory (system, developer and protected messages)"
    " or increase the model context limit",
    "reserved": "let injectors reserve less, or increase the model context limit",
    "tools": "send fewer or shorter tool schemas, or increase the model context limit",
}
_USUAL_ADVICE = "raise the target, shorten the newest messages, or increase the model context limit"


class InsufficientBudget(CompactError):
    """The smallest legal prompt does not fit; `parts` says how many tokens each part takes."""

    code = "insufficient_budget"

    def __init__(self, *, budget_tokens: int, parts: Mapping[str, int]) -> None:
        self.budget_tokens = budget_tokens
        self.parts = dict(parts)
        self.needed_tokens = sum(self.parts.values())
        listed = ", ".join(f"{name} {tokens:,}" for name, tokens in self.parts.items() if tokens)
        super().__init__(
            f"the smallest prompt takes {self.needed_tokens:,} tokens, "
            f"{self.needed_tokens - budget_tokens:,} more than the budget of {budget_tokens:,} ({listed})",
            hint=self._advice(),
        )

    def _advice(self) -> str:
        sizes = {name: tokens for name, tokens in self.parts.items() if name not in _PROTECTED}
        sizes["protected"] = sum(self.parts.get(name, 0) for name in _PROTECTED)
        return _ADVICE.get(max(sizes, key=lambda name: sizes[name]), _USUAL_ADVICE)


class InjectionTooLarge(CompactError):
    """An injector returned more than it has reserved; `injector` is its name."""

    code = "injection_too_large"

    def __init__(self, *, injector: str, reserve_tokens: int, actual_tokens: int) -> None:
        self.injector = injector
        self.reserve_tokens = reserve_tokens
        self.actual_tokens = actual_tokens
        super().__init__(
            f"the injector {injector!r} returned {actual_tokens:,} tokens, "
            f"{actual_tokens - reserve_tokens:,} more than the {reserve_tokens:,} it has reserved",
            hint="have it return less (its context has the reserve, and a counter), or raise its reserve_tokens",
        )


class ConfigError(CompactError, ValueError):
    """A setting that is unknown, out of range or contradictory; `field` is its dotted path."""

    code = "invalid_config"

    def __init__(self, message: str, *, field: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.field = field


class InvalidHistory(CompactError, ValueError):
    """A history that cannot be read; `place` names the entry, e.g. ``messages[3].role``."""

    code = "invalid_history"

    def __init__(self, message: str, *, place: str, hint: str = "") -> None:
        super().__init__(f"{place}: {message}", hint=hint)
        self.place = place


class UnknownSession(CompactError, KeyError):
    """A question about a session of which nothing is known."""

    code = "unknown_session"

    def __init__(self, session_id: str) -> None:
        super().__init__(f"nothing is known of session {session_id!r}", hint="preflight it first, or check the id")
        self.session_id = session_id


class SummaryFailed(CompactError):
    """There is no summary that can be used; `tried` says what was asked for, oldest first."""

    code = "summary_failed"
    tried: tuple[str, ...] = ()

    def note_attempts(self, tried: tuple[str, ...]) -> None:
        """Keep what was asked for before this failure."""
        self.tried = tried

    def __str__(self) -> str:
        before = f"\ntried: {'; '.join(self.tried)}" if self.tried else ""
        return f"{self.message}{before}" + (f"\nhint: {self.hint}" if self.hint else "")


class SummaryEmpty(SummaryFailed):
    """The answer says nothing."""

    code = "summary_empty"


class SummaryTruncated(SummaryFailed):
    """The answer was cut off before its end."""

    code = "summary_truncated"


class SummaryEchoed(SummaryFailed):
    """The answer is mostly a copy of what was asked."""

    code = "summary_echoed"


class SummaryRefused(SummaryFailed):
    """The model would not write it."""

    code = "summary_refused"


class SummaryUnreadable(SummaryFailed):
    """The answer is no summary."""

    code = "summary_unreadable"


class SummaryTooLong(SummaryFailed):
    """The summary takes more tokens than it may."""

    code = "summary_too_long"

    def __init__(self, *, tokens: int, max_tokens: int) -> None:
        self.tokens, self.max_tokens = tokens, max_tokens
        super().__init__(f"the summary takes {tokens:,} tokens, more than the {max_tokens:,} it may take")


class SummarizerUnavailable(SummaryFailed):
    """The model could not be asked, or did not answer in time."""

    code = "summarizer_unavailable"


class SummarizerPaused(SummaryFailed):
    """The summariser failed too often and is left alone for a while."""

    code = "summarizer_paused"


class SpendLimitReached(SummaryFailed):
    """The session has spent on summaries what it may."""

    code = "spend_limit_reached"
