"""Invents what a conversation is about: words, names, numbers and ids that no other conversation has."""

from __future__ import annotations

from random import Random

_ONSETS = (
    "b",
    "br",
    "d",
    "dr",
    "f",
    "g",
    "gl",
    "h",
    "k",
    "kr",
    "l",
    "m",
    "n",
    "p",
    "pl",
    "r",
    "s",
    "st",
    "t",
    "tr",
    "v",
)
_VOWELS = ("a", "e", "i", "o", "u", "ai", "ou")
_CODAS = ("", "l", "n", "r", "s", "t", "m", "nd", "rk", "x")
_LETTERS = "ABCDEFGHJKLMNPRSTUVWXYZ"


class Words:
    """A source of invented words; none comes twice."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._used: set[str] = set()

    def word(self) -> str:
        """A plain word of two syllables."""
        while True:
            word = "".join(self._syllable() for _ in range(2))
            if len(word) >= 5 and word not in self._used:
                self._used.add(word)
                return word

    def words(self, count: int) -> list[str]:
        """Several of them."""
        return [self.word() for _ in range(count)]

    def person(self) -> str:
        """A first and a last name."""
        return f"{self.word().capitalize()} {self.word().capitalize()}"

    def number(self, low: int = 120, high: int = 9800) -> int:
        """A number of three digits or more."""
        return self._random.randint(low, high)

    def code(self, letters: int = 3, digits: int = 4) -> str:
        """An id, such as `KTR4471`."""
        start = "".join(self._random.choice(_LETTERS) for _ in range(letters))
        return start + "".join(str(self._random.randint(0, 9)) for _ in range(digits))

    def price(self) -> str:
        """An amount with two decimals."""
        return f"{self._random.randint(110, 990)}.{self._random.randint(10, 99)}"

    def date(self) -> str:
        """A day."""
        return f"{self._random.randint(2025, 2027)}-{self._random.randint(1, 12):02}-{self._random.randint(1, 28):02}"

    def _syllable(self) -> str:
        return self._random.choice(_ONSETS) + self._random.choice(_VOWELS) + self._random.choice(_CODAS)
