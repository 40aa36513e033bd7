"""Numbers with their nouns: one message is not `1 messages`, in no command, message or page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from compact.core.engine.event_spec import fill
from compact.core.plurals import noun, quantity

SOURCE = Path(__file__).parents[1] / "src" / "compact"
NOUNS = (
    "messages|calls|compactions|turns|sessions|events|spans|strings|artifacts|lines|prompts|constraints|rows|clients|"
    "transcripts|records|responses|versions|summaries|repairs|decisions|facts|places|characters|ranges|blocks|times"
)
_IN_PYTHON = re.compile(rf"\{{[^{{}}\"']+\}} (?:more |old |removed |earlier )?(?:{NOUNS})\b")
_IN_JAVASCRIPT = re.compile(rf"\$\{{whole\([^}}]*\)\}} (?:more )?(?:{NOUNS})\b")
# Where the number is never one, or is no number.
_NEVER_ONE = (
    "messages in a row",
    "calls {call.name}",
    "if len(ids) > 1",
    "{messages:,} messages, {tokens:,} tokens, through",
    "{len(replay.history):,} messages",
    "_MAX_CACHE_MARKS",
    "stands behind other blocks",
    'f"{len(row.places):,} messages"',
    "{len(steps)} more calls",
    '? "once"',
)


def _sources() -> list[Path]:
    pages = (SOURCE / "viewer" / "static").rglob("*.js")
    return [path for path in (*SOURCE.rglob("*.py"), *pages) if "testing" not in path.parts]


def test_numbers_agree_with_their_nouns():
    """Whoever writes `{n} messages` takes `quantity` for it, or `count` in the page."""
    found = [
        f"{path.relative_to(SOURCE)}:{number}: {line.strip()}"
        for path in _sources()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if (_IN_JAVASCRIPT if path.suffix == ".js" else _IN_PYTHON).search(line)
        and not any(fragment in line for fragment in _NEVER_ONE)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("number", "expected"), [(0, "0 messages"), (1, "1 message"), (2, "2 messages"), (1_200, "1,200 messages")]
)
def test_quantity(number, expected):
    """One is one, and everything else is many."""
    assert quantity(number, "message") == expected


def test_a_plural_of_its_own():
    """Where it is not the noun and an s."""
    assert quantity(2, "summary", "summaries") == "2 summaries"
    assert noun(1, "constraint was", "constraints were") == "constraint was"


def test_templates_of_events():
    """A number, a list, and a value that was redacted."""
    data = {"one": 1, "ids": ["a", "b"], "hidden": "<REDACTED>"}
    assert fill("{one:n message}, {ids:n call}, {hidden:n turn}", data) == "1 message, 2 calls, <REDACTED> turns"
