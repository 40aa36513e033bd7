"""What Compact raises; `StoreError`, `VersionConflict` and `ArchiveError` are beside their sockets, in `core.audit`.

    CompactError
    ├── InsufficientBudget   the smallest legal prompt is still larger than the budget
    ├── InjectionTooLarge    an injector takes more tokens than it has reserved
    ├── ConfigError          a configuration that makes no sense
    ├── InvalidHistory       a history that cannot be read as messages
    ├── UnknownSession       a question about a session that never was
    ├── WaitTimeout          something that was waited for took too long
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
    """What went wrong, how much, and what to do about it; the base class of everything that Compact raises.

    Catch it around calls that you do not want to end your agent: `str(error)` has the message and the hint.

    Attributes:
        message: What went wrong.
        hint: What to do about it; empty if there is nothing to say.
        code: A stable name of the kind of error, for programs.

    Example:
        >>> from compact import CompactError, CompactManager
        >>> try:
        ...     CompactManager().status("nobody")
        ... except CompactError as error:
        ...     print(error.code, "-", error.hint)
        unknown_session - preflight it first, or check the id
    """

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
    """The smallest legal prompt does not fit the budget.

    `preflight` and `manual_compact` raise it where pinned messages, tool schemas or the newest messages alone are too
    large. Shorten what takes the most, or set a larger window.

    Attributes:
        budget_tokens: The tokens there are.
        needed_tokens: The tokens that the smallest prompt takes.
        parts: How many tokens each part of that prompt takes.

    Example:
        >>> from compact import CompactConfig, CompactManager, InsufficientBudget
        >>> manager = CompactManager(CompactConfig(max_context_tokens=4_000))
        >>> try:
        ...     manager.preflight("chat-1", [{"role": "system", "content": "rule " * 9_000}])
        ... except InsufficientBudget as error:
        ...     print(max(error.parts, key=error.parts.get), error.needed_tokens > error.budget_tokens)
        system True
    """

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
    """An injector returned more than it has reserved.

    `preflight` raises it. Have the injector return less, or raise its `reserve_tokens`.

    Attributes:
        injector: The name of the injector.
        reserve_tokens: The tokens it has reserved.
        actual_tokens: The tokens it returned.

    Example:
        >>> from compact import CompactManager, InjectionTooLarge, Injector
        >>> manager = CompactManager(injectors=[Injector("notes", 10, lambda context: "word " * 500)])
        >>> try:
        ...     manager.preflight("chat-1", [{"role": "user", "content": "Hello"}])
        ... except InjectionTooLarge as error:
        ...     print(error.injector, error.actual_tokens > error.reserve_tokens)
        notes True
    """

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
    """A setting that is unknown, out of range or contradictory.

    `CompactConfig`, `CompactConfig.load` and `CompactManager` raise it. It is a `ValueError` too.

    Attributes:
        message: What is wrong with it.
        field: The dotted path of the setting: `policy.trigger_pct`.
        hint: What to do about it.

    Example:
        >>> from compact import CompactConfig, ConfigError
        >>> try:
        ...     CompactConfig(policy={"trigger_pct": 7})
        ... except ConfigError as error:
        ...     print(error.field)
        policy.trigger_pct
    """

    code = "invalid_config"

    def __init__(self, message: str, *, field: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.field = field


class InvalidHistory(CompactError, ValueError):
    """A history that cannot be read as messages.

    Every call that takes messages raises it. It is a `ValueError` too.

    Attributes:
        message: What is wrong, and where.
        place: The entry: `messages[3].role`.
        hint: What to do about it.

    Example:
        >>> from compact import CompactManager, InvalidHistory
        >>> try:
        ...     CompactManager().preflight("chat-1", [{"role": "user", "content": 7}])
        ... except InvalidHistory as error:
        ...     print(error.place)
        messages[0].content
    """

    code = "invalid_history"

    def __init__(self, message: str, *, place: str, hint: str = "") -> None:
        super().__init__(f"{place}: {message}", hint=hint)
        self.place = place


class UnknownSession(CompactError, KeyError):
    """A question about a session of which nothing is known.

    Preflight something in the session first, or check the id and the store (`state.url`). It is a `KeyError` too.

    Attributes:
        session_id: The id that was asked for.

    Example:
        >>> from compact import CompactManager, UnknownSession
        >>> try:
        ...     CompactManager().history("chat-9")
        ... except UnknownSession as error:
        ...     print(error.session_id)
        chat-9
    """

    code = "unknown_session"

    def __init__(self, session_id: str) -> None:
        super().__init__(f"nothing is known of session {session_id!r}", hint="preflight it first, or check the id")
        self.session_id = session_id


class WaitTimeout(CompactError):
    """A store, a summariser, an archive or another process did not answer in time.

    `preflight` goes on without the answer, and an event says so; other calls that need a store raise it.

    Attributes:
        what: What did not answer.
        seconds: How long it was waited for.

    Example:
        >>> from compact.core.errors import WaitTimeout
        >>> print(WaitTimeout("the store", 15, limited_by="state.timeout_seconds"))
        the store did not answer within 15 s
        hint: find out why it hangs, or raise state.timeout_seconds
    """

    code = "wait_timeout"

    def __init__(self, what: str, seconds: float, *, limited_by: str) -> None:
        self.what, self.seconds = what, seconds
        hint = f"find out why it hangs, or raise {limited_by}"
        super().__init__(f"{what} did not answer within {seconds:.3g} s", hint=hint)


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
