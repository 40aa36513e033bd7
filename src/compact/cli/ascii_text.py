"""Text for terminals whose encoding has no arrows and no letters beyond its own: ASCII stands for what is missing."""

from __future__ import annotations

import codecs
import unicodedata

ERROR_HANDLER = "compact_ascii"
_SIGNS = {
    "→": "->",
    "←": "<-",
    "↔": "<->",
    "…": "...",
    "–": "-",
    "—": "-",
    "‐": "-",
    "·": "-",
    "•": "-",
    "×": "x",
    "≥": ">=",
    "≤": "<=",
    "≈": "~",
    "±": "+-",
    "‘": "'",
    "’": "'",
    "“": '"',
    "”": '"',
    "▲": "^",
    "▼": "v",
    "✓": "ok",
    "✗": "x",
    "€": "EUR",
}
_HORIZONTAL, _VERTICAL = "─━┄┅┈┉╌╍═╴╶╸╺╼╾", "│┃┆┇┊┋╎╏║╵╷╹╻╽╿"


def shown_in(text: str, encoding: str | None) -> str:
    """Return a text as an encoding can show it: unchanged if it can, else with ASCII for what it lacks."""
    if text.isascii():
        return text
    try:
        text.encode(encoding or "utf-8")
    except UnicodeEncodeError:
        return text.encode(encoding or "utf-8", ERROR_HANDLER).decode(encoding or "utf-8")
    return text


def ascii_of(char: str) -> str:
    """Return what stands for a character: a sign that looks like it, the letter without its mark, or its number."""
    if char in _SIGNS:
        return _SIGNS[char]
    code = ord(char)
    if 0x2500 <= code <= 0x257F:  # lines of boxes
        return "-" if char in _HORIZONTAL else "|" if char in _VERTICAL else "+"
    if 0x2580 <= code <= 0x259F:  # parts of bars
        return "." if char in "░▒" else "#"
    if 0x2800 <= code <= 0x28FF:  # what spinners are made of
        return "*"
    plain = unicodedata.normalize("NFKD", char).encode("ascii", "ignore").decode()
    return plain or char.encode("ascii", "backslashreplace").decode()


def _replace(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(ascii_of, error.object[error.start : error.end])), error.end


codecs.register_error(ERROR_HANDLER, _replace)
