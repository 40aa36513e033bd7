"""The data files of this package, each read once: cues, classes of words, patterns and learned weights."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True, slots=True)
class Cue:
    """Words that speak for a sentence being a constraint, or against it, in the notation of data/cues.toml."""

    name: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LearnedWeight:
    """The weight of a feature, in tenths, and the number of independent sources whose examples have it."""

    tenths: int
    sources: int


@cache
def english_cues() -> tuple[Cue, ...]:
    """Return the cues whose weights were learned."""
    return tuple(Cue(name, _lines(table)) for name, table in _read("cues").items())


@cache
def foreign_cues() -> tuple[Cue, ...]:
    """Return the cues of other languages, for scripts with spaces between words."""
    return tuple(Cue(name, _lines(table)) for name, table in _read("languages").items() if name != "unspaced")


def unspaced_pattern() -> re.Pattern[str]:
    """Return what matches a cue of a language whose words are not looked up one by one."""
    return pattern("languages", "unspaced")


@cache
def word_class(name: str) -> frozenset[str]:
    """Return the words of a class."""
    return frozenset(str(_read("words")[name]["words"]).split())


@cache
def pattern(file: str, section: str, *, before: str = "", after: str = "") -> re.Pattern[str]:
    """Return what matches any line of a section, between two further expressions; case does not matter."""
    return re.compile(f"{before}{one_of(file, section)}{after}", re.IGNORECASE)


def one_of(file: str, section: str) -> str:
    """Return a regular expression for any line of a section."""
    return f"(?:{'|'.join(_lines(_read(file)[section]))})"


@cache
def learned_weights() -> Mapping[str, LearnedWeight]:
    """Return the features that have a weight, with it."""
    found: dict[str, LearnedWeight] = {}
    for lines in _read("weights")["weights"].values():
        for line in str(lines).strip().splitlines():
            tenths, sources, feature = line.split(" ", 2)
            found[feature] = LearnedWeight(int(tenths), int(sources))
    return MappingProxyType(found)


@cache
def feature_weights() -> Mapping[str, int]:
    """Return the weight of each feature, in tenths: whole numbers add up to the same in any order."""
    return MappingProxyType({feature: weight.tenths for feature, weight in learned_weights().items()})


@cache
def _read(name: str) -> dict[str, Any]:
    return tomllib.loads(files("compact.constraints").joinpath("data", f"{name}.toml").read_text(encoding="utf-8"))


def _lines(table: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(table["lines"]).strip().splitlines())
