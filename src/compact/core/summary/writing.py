"""How a summary came about: who wrote it, and what that took."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

# The summariser that needs no model.
BY_CODE = "code"


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryWriting:
    """Who wrote a summary (a model, a function, or code), what was asked of it, and how long it took.

    `instead_of` names the summariser that failed, if code stood in for it; tokens and calls are then those of the
    attempts that failed. `is_counted` is False if the summariser does not tell its tokens, and `from_cache` True for a
    summary that had been written of the very same before: it took nothing.
    """

    summarizer: str = BY_CODE
    instead_of: str = ""
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    is_counted: bool = True
    from_cache: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return plain data; `from_dict` gives back an equal one."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SummaryWriting:
        """Return what `to_dict` made plain data of."""
        return cls(**data)
