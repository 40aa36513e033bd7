"""What the rest of a session needs of what came before a cut: found in the real future, never shown to a system."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from compact.measuring.recordings import (
    Recording,
    Wire,
    argument_values,
    content_text,
    interface_names,
    is_typed,
    message_text,
    text_of,
)
from compact.measuring.specifics import find_bounded, specific_strings

SHORTEST_LINE, LONGEST_LINE = 15, 300
RARE_SHARE = 0.05
GENERAL_SOURCES = 2
# How many words on either side count as beside a string, and at how many of its places it is looked at.
BESIDE, MOST_PLACES, SHORTEST_NEIGHBOUR = 3, 12, 3

_PLAIN_WORD = re.compile(r"[A-Za-z]{4,}")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Need:
    """A specific string the agent used later, the words it stood beside, and where it was last said."""

    string: str
    neighbours: tuple[frozenset[str], ...]
    last_role: str
    last_distance: int


@dataclass(frozen=True, slots=True)
class SessionNeeds:
    """Everything one transcript is scored by; `cut` is where the future begins."""

    id: str
    source: str
    cut: int
    prefix_tokens: int
    needs: tuple[Need, ...]
    rare_words: frozenset[str]
    lines: tuple[str, ...]
    typed_lines: tuple[str, ...]


class Words:
    """A text and its words in order, to see what stands beside a string."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def _spans(self) -> tuple[list[str], list[int], list[int]]:
        words, starts, ends = list[str](), list[int](), list[int]()
        for match in _WORD.finditer(self.text):
            words.append(match.group().lower())
            starts.append(match.start())
            ends.append(match.end())
        return words, starts, ends

    def beside(self, string: str, reach: int, most: int) -> list[frozenset[str]]:
        """For each place of a string, the words within reach of it."""
        words, starts, ends = self._spans
        found: list[frozenset[str]] = []
        place = find_bounded(string, self.text)
        while place >= 0 and len(found) < most:
            first, behind = bisect_left(ends, place + 1), bisect_left(starts, place + len(string))
            near = words[max(0, first - reach) : first] + words[behind : behind + reach]
            found.append(frozenset(word for word in near if len(word) >= SHORTEST_NEIGHBOUR))
            place = find_bounded(string, self.text, place + len(string))
        return found


def plain_words(text: str) -> set[str]:
    """The plain words of a text, in lower case."""
    return {word.lower() for word in _PLAIN_WORD.findall(text)}


def lines_of(text: str) -> list[str]:
    """The lines of a text that are neither too short nor too long to tell something, once each."""
    stripped = (line.strip() for line in text.splitlines())
    return list(dict.fromkeys(line for line in stripped if SHORTEST_LINE <= len(line) <= LONGEST_LINE))


def typed_lines_of(messages: Iterable[Wire]) -> tuple[str, ...]:
    """What people typed, line by line."""
    lines = (line.strip() for message in messages if is_typed(message) for line in content_text(message).splitlines())
    return tuple(line for line in lines if len(line) >= SHORTEST_LINE)


class Commons:
    """What is no news: strings that several sources know, and words that many transcripts use."""

    def __init__(self, transcripts: Sequence[Recording]) -> None:
        self._sources: defaultdict[str, set[str]] = defaultdict(set)
        self._words: Counter[str] = Counter()
        self._transcripts = len(transcripts)
        for transcript in transcripts:
            text = text_of(transcript.messages)
            self._sources[transcript.source] |= specific_strings(text)
            self._words.update(plain_words(text))
        self._strings = Counter(string for strings in self._sources.values() for string in strings)

    def is_general(self, string: str, source: str) -> bool:
        """Whether two or more other sources have it."""
        return self._strings[string] - (string in self._sources[source]) >= GENERAL_SOURCES

    def is_rare(self, word: str) -> bool:
        """Whether few transcripts use a word; one is few, however small the sample."""
        return self._words[word] <= max(1, RARE_SHARE * self._transcripts)


class Future:
    """Walks through what came after a cut and collects what the agent took from before it."""

    def __init__(self, prefix: str, system: str, names: set[str], source: str, commons: Commons) -> None:
        self._prefix, self._system, self._names, self._source = prefix, system, names, source
        self._commons = commons
        self._prefix_words = plain_words(prefix)
        self._known_words = plain_words(system).union(*map(plain_words, names))
        self._given = ""
        self._given_words: set[str] = set()
        self._strings: dict[str, bool] = {}
        self._lines: dict[str, bool] = {}
        self._words: set[str] = set()

    @property
    def strings(self) -> list[str]:
        """Specific strings that were needed."""
        return [string for string, needed in self._strings.items() if needed]

    @property
    def lines(self) -> tuple[str, ...]:
        """Lines that were reproduced."""
        return tuple(line for line, needed in self._lines.items() if needed)

    @property
    def words(self) -> frozenset[str]:
        """Rare plain words that were used."""
        return frozenset(self._words)

    def walk(self, messages: Iterable[Wire]) -> Future:
        """Take what the agent says as a need, and what it is told as given back."""
        for message in messages:
            text = message_text(message)
            if message["role"] == "assistant":
                self._take(text)
            elif message.get("name") != "compact_summary":
                self._given += "\n" + text
                self._given_words |= plain_words(text)
        return self

    def _take(self, text: str) -> None:
        for string in sorted(specific_strings(text)):
            if string not in self._strings:
                self._strings[string] = self._is_needed(string)
        for line in lines_of(text):
            if line not in self._lines:
                told = line in self._given or line in self._system
                self._lines[line] = not told and line in self._prefix
        old = (plain_words(text) & self._prefix_words) - self._given_words - self._known_words
        self._words |= {word for word in old if self._commons.is_rare(word)}

    def _is_needed(self, string: str) -> bool:
        if string in self._names or self._commons.is_general(string, self._source):
            return False
        if any(find_bounded(string, known) >= 0 for known in (self._system, self._given)):
            return False
        return find_bounded(string, self._prefix) >= 0


def needs_of(
    identity: str,
    transcript: Recording,
    future: Sequence[Wire],
    cut: int,
    counts: Sequence[int],
    commons: Commons,
) -> SessionNeeds:
    """What the future needed of the first `cut` messages of a transcript."""
    prefix = transcript.messages[:cut]
    text = text_of(prefix)
    names = interface_names([*prefix, *future])
    walked = Future(text, transcript.system, names, transcript.source, commons).walk(future)
    words, places = Words(text), Places(prefix, counts[:cut])
    return SessionNeeds(
        id=identity,
        source=transcript.source,
        cut=cut,
        prefix_tokens=sum(counts[:cut]),
        needs=tuple(
            Need(string, tuple(words.beside(string, BESIDE, MOST_PLACES)), *places.last(string))
            for string in walked.strings
        ),
        rare_words=walked.words,
        lines=walked.lines,
        typed_lines=typed_lines_of(prefix),
    )


class Places:
    """Where a string was last said, and by whom."""

    def __init__(self, messages: Sequence[Wire], counts: Sequence[int]) -> None:
        self._voices: list[tuple[str, str, int]] = []
        behind = sum(counts)
        for message, count in zip(messages, counts, strict=True):
            behind -= count
            role = "user" if is_typed(message) else message.get("name") or message["role"]
            self._voices.append(("tool" if message["role"] == "tool" else role, content_text(message), behind))
            if message.get("tool_calls"):
                self._voices.append(("arguments", "\n".join(argument_values(message)), behind))

    def last(self, string: str) -> tuple[str, int]:
        """The last voice that said it, and how many tokens before the cut."""
        for role, text, behind in reversed(self._voices):
            if find_bounded(string, text) >= 0:
                return role, behind
        return "across", 0
