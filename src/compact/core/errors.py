"""Everything Compact raises.

    CompactError
    ├── InsufficientBudget   the smallest legal prompt is still larger than the budget
    ├── ConfigError          a configuration that makes no sense
    ├── InvalidHistory       a history that cannot be read as messages
    └── UnknownSession       a question about a session that never was

`preflight` raises the first and the third, the manager's constructor the second; every other failure on the way
falls back and is reported as an event.
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
        largest = max(self.parts, key=lambda name: self.parts[name], default="")
        if largest == "pinned":
            return (
                "reduce protected memory (system, developer and protected messages) or increase the model context limit"
            )
        if largest == "tools":
            return "send fewer or shorter tool schemas, or increase the model context limit"
        return "raise the target, shorten the newest messages, or increase the model context limit"


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
