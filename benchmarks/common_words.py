"""Remake the list of words that stand in conversations of every kind (src/compact/core/facts/common_words.py).

    python benchmarks/common_words.py --data FOLDER [--write]

A word of four letters or more is common if at least 6 independent sources of transcripts have it, in 12 transcripts or
more: in what people typed, in what agents wrote and called, and in what tools printed; system prompts are left out. So
no name of a single project or person can be in the list. Prints what would change; --write changes it.
"""

from __future__ import annotations

import argparse
import textwrap
from collections import Counter, defaultdict
from pathlib import Path

from transcripts import Transcript, read, read_transcripts

from compact.core.facts.common_words import COMMON_WORDS
from compact.core.facts.grounding import message_texts
from compact.core.facts.text import words_of

TARGET = Path(__file__).parents[1] / "src/compact/core/facts/common_words.py"
MIN_WORD_CHARS = 4
MIN_SOURCES, MIN_TRANSCRIPTS = 6, 12
HEAD = '''"""Words that stand in conversations of every kind: one that is used again says nothing about this one.

Made by `python benchmarks/common_words.py --data FOLDER --write`, which says how, out of 187 public sessions of coding
and service agents from 11 sources.
"""

from __future__ import annotations

_WORDS = """
'''
TAIL = '''
"""
COMMON_WORDS = frozenset(_WORDS.split())
'''


def words_in(transcript: Transcript) -> set[str]:
    """Return every word of a transcript; of calls, the values of their arguments."""
    messages = read(message for message in transcript.messages if message["role"] != "system")
    texts = (text for message in messages for text in message_texts(message, with_names=False))
    return {word for text in texts for word in words_of(text, min_chars=MIN_WORD_CHARS)}


def common_words(transcripts: list[Transcript]) -> list[str]:
    """Return the words that enough transcripts of enough sources have, in order."""
    counts: Counter[str] = Counter()
    sources: defaultdict[str, set[str]] = defaultdict(set)
    for transcript in transcripts:
        for word in words_in(transcript):
            counts[word] += 1
            sources[word].add(transcript.source)
    return sorted(word for word in counts if counts[word] >= MIN_TRANSCRIPTS and len(sources[word]) >= MIN_SOURCES)


def main() -> None:
    """Print, or write, the list."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="a folder of *.jsonl.gz, a conversation a line")
    parser.add_argument("--write", action="store_true", help="write the list into the product")
    options = parser.parse_args()
    words = common_words(read_transcripts(options.data))
    print(f"{len(words):,} words")
    print("new:", *sorted(set(words) - COMMON_WORDS))
    print("gone:", *sorted(COMMON_WORDS - set(words)))
    if options.write:
        TARGET.write_text(HEAD + textwrap.fill(" ".join(words), 118) + TAIL, encoding="utf-8")


if __name__ == "__main__":
    main()
