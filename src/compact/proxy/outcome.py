"""What was done with a request, and the response header that says so."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from compact.proxy.recall.offer import RecallOffer

HEADER = b"X-Compact"


@dataclass(frozen=True, slots=True)
class RequestOutcome:
    """The body to send instead of the one that came (None: send that one), and what to say about it.

    `status` is one of

    - ``unchanged``    the conversation was sent as it came
    - ``compacted``    a new plan was made for it
    - ``in-force``     an earlier plan is still in force, and new messages were added behind it
    - ``repaired``     it was not legal for its provider, and is now
    - ``over-budget``  nothing makes it fit: sent as it came, the provider will say so
    - ``stood-down``   the provider keeps the history: sent as it came
    - ``skipped``      there was no conversation that could be read, or that may be changed: sent as it came
    - ``failed``       the compaction failed: sent as it came
    """

    status: str
    body: bytes | None = None
    session_id: str = ""
    model: str = ""
    window_tokens: int = 0  # the window that the request asked for
    # Which of the session's calls this is, for the usage that is reported later; 0 if nothing was measured.
    call: int = 0
    plan: int = 0
    tokens: int = 0
    tokens_before: int = 0
    reason: str = ""
    # Set if the request offers the recall tool; `recalls` counts the calls of it that were answered, as far as that is
    # known when the response begins.
    recall: RecallOffer | None = None
    recalls: int = 0
    # Ends once it is stored what is sent; no answer is passed on before.
    stored: asyncio.Task[Any] | None = None

    @property
    def header(self) -> tuple[bytes, bytes]:
        """The response header: `X-Compact: compacted; plan=3 before=91022 after=40133 session=…`."""
        facts = {
            "reason": self.reason,
            "plan": self.plan,
            "before": self.tokens_before,
            "after" if self.tokens_before else "tokens": self.tokens,
            "recalls": self.recalls,
            "session": self.session_id,
        }
        details = " ".join(f"{name}={value}" for name, value in facts.items() if value)
        return HEADER, (f"{self.status}; {details}" if details else self.status).encode("ascii", "replace")
