"""The user's own patterns, on RE2: its time is linear in the text, whatever the pattern."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from compact.core.errors import ConfigError
from compact.extras import install_line

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class CustomPattern:
    """A compiled pattern; of its matches the group named `secret` is taken, or the whole if there is none."""

    regex: Any
    group: int

    def find(self, data: bytes) -> Iterator[Span]:
        """Yield the places it takes, in order; empty matches are none."""
        for match in self.regex.finditer(data):
            start, end = match.span(self.group)
            if end > start:
                yield start, end


def compile_patterns(patterns: Iterable[str]) -> tuple[CustomPattern, ...]:
    """Return the patterns ready for use, or a `ConfigError` that names the one that cannot be."""
    sources = tuple(patterns)
    return tuple(_compiled(source, index) for index, source in enumerate(sources))


def _compiled(source: str, index: int) -> CustomPattern:
    field = f"redaction.patterns[{index}]"
    re2 = _engine(field)
    options = re2.Options()
    options.log_errors = False
    try:
        # Bytes, so that its places are ours; the pattern still counts in characters, not bytes.
        regex = re2.compile(source.encode("utf-8"), options)
    except (re2.error, UnicodeEncodeError) as error:
        reason = error.args[0].decode("utf-8", "replace") if isinstance(error.args[0], bytes) else str(error)
        raise ConfigError(
            f"the redaction pattern {source!r} cannot be used: {reason}",
            field=field,
            hint="patterns are RE2: no backreferences, no lookaround (https://github.com/google/re2/wiki/Syntax)",
        ) from error
    return CustomPattern(regex, dict(regex.groupindex).get(b"secret", 0))


def _engine(field: str) -> Any:
    try:
        import re2  # pyright: ignore[reportMissingTypeStubs]
    except ImportError as error:
        raise ConfigError(
            "redaction patterns of your own need the package google-re2, which is not installed",
            field=field,
            hint=f"{install_line('redaction')}, or remove redaction.patterns",
        ) from error
    return re2
