"""The stem of an English word, so that "refunds" and "refunded" find "refund".

The English stemmer of the Snowball project ("Porter2", snowballstem.org/algorithms/english/stemmer.html), written from
its description. Databases have stemmers too, and each has another one: with our own, every store finds the same.
"""

from __future__ import annotations

import re

_VOWELS = frozenset("aeiouy")
_DOUBLES = frozenset(("bb", "dd", "ff", "gg", "mm", "nn", "pp", "rr", "tt"))
# Where the first region begins behind a prefix that would cut too much.
_PREFIX = re.compile("gener|commun|arsen|past|univers|later|emerg|organ|inter")
_REGION = re.compile("[aeiouy][^aeiouy]")
_EXCEPTIONS = {
    "skis": "ski",
    "skies": "sky",
    "idly": "idl",
    "gently": "gentl",
    "ugly": "ugli",
    "early": "earli",
    "only": "onli",
    "singly": "singl",
    **dict.fromkeys(("sky", "news", "howe", "atlas", "cosmos", "bias", "andes")),
}
_KEPT_AFTER_PLURAL = frozenset(("inning", "outing", "canning", "herring", "earring", "evening"))
_KEPT_BEFORE_EED = frozenset(("proc", "exc", "succ"))
# The longest suffix that fits is the one that counts.
_SUFFIXES_2 = {
    "ization": "ize",
    "ational": "ate",
    "ousness": "ous",
    "iveness": "ive",
    "fulness": "ful",
    "tional": "tion",
    "lessli": "less",
    "biliti": "ble",
    "ousli": "ous",
    "iviti": "ive",
    "fulli": "ful",
    "entli": "ent",
    "ation": "ate",
    "aliti": "al",
    "alism": "al",
    "ogist": "og",
    "enci": "ence",
    "anci": "ance",
    "abli": "able",
    "izer": "ize",
    "ator": "ate",
    "alli": "al",
    "bli": "ble",
    "ogi": "og",
    "li": "",
}
_SUFFIXES_3 = {
    "ational": "ate",
    "tional": "tion",
    "alize": "al",
    "icate": "ic",
    "iciti": "ic",
    "ative": "",
    "ical": "ic",
    "ness": "",
    "ful": "",
}
_ENDINGS_4 = "ement ance ence able ible ment ant ent ism ate iti ous ive ize ion al er ic"
_SUFFIXES_4: dict[str, str] = dict.fromkeys(_ENDINGS_4.split(), "")
_LI_ENDINGS = frozenset("cdeghkmnrt")


def stem(word: str) -> str:
    """Return the stem of a lower-case English word of ASCII letters; of a short one, the word itself."""
    if len(word) <= 2:
        return word
    if word in _EXCEPTIONS:
        return _EXCEPTIONS[word] or word
    word = _marked(word)
    first = _region(word, 0)
    if prefix := _PREFIX.match(word):
        first = prefix.end()
    second = _region(word, first)
    word = _without_plural(word)
    if word not in _KEPT_AFTER_PLURAL:
        word = _without_past(word, first)
        word = _with_i(word)
        if len(word) > first:
            word = _replaced(word, first) if word[-1] in "ilmnrst" else word
            word = _shortened(word, first, second) if word[-1] in "eils" else word
            word = _cut(word, second) if len(word) > second else word
        word = _without_end(word, first, second)
    return word.replace("Y", "y")


def _marked(word: str) -> str:
    """Return the word with each `y` that is a consonant as `Y`."""
    if "y" not in word:
        return word
    letters = list(word)
    for place, letter in enumerate(letters):
        if letter == "y" and (place == 0 or letters[place - 1] in _VOWELS):
            letters[place] = "Y"
    return "".join(letters)


def _region(word: str, start: int) -> int:
    """Return the place behind the first consonant that follows a vowel."""
    found = _REGION.search(word, start)
    return found.end() if found else len(word)


def _has_vowel(text: str) -> bool:
    return not _VOWELS.isdisjoint(text)


def _ends_short(word: str) -> bool:
    """Return True if the word ends in a short syllable."""
    if word == "past":
        return True
    if len(word) == 2:
        return word[0] in _VOWELS and word[1] not in _VOWELS
    if len(word) < 3:
        return False
    before, vowel, last = word[-3:]
    return before not in _VOWELS and vowel in _VOWELS and last not in _VOWELS and last not in "wxY"


def _without_plural(word: str) -> str:
    if word.endswith("sses"):
        return word[:-2]
    if word.endswith(("ied", "ies")):
        return word[:-2] if len(word) > 4 else word[:-1]
    if word.endswith("s") and not word.endswith(("us", "ss")) and _has_vowel(word[:-2]):
        return word[:-1]
    return word


def _without_past(word: str, first: int) -> str:
    for suffix in ("eedly", "eed"):
        if word.endswith(suffix):
            base = word[: -len(suffix)]
            return base + "ee" if len(base) >= first and base not in _KEPT_BEFORE_EED else word
    for suffix in ("ingly", "edly", "ing", "ed"):
        if word.endswith(suffix):
            base = word[: -len(suffix)]
            return _repaired(base, suffix, first) if _has_vowel(base) else word
    return word


def _repaired(base: str, suffix: str, first: int) -> str:
    """Return what is left without an ending as a word: `hop` for `hopp`, `hope` for `hop`."""
    if suffix == "ing" and len(base) == 2 and base[1] == "y" and base[0] not in _VOWELS:
        return f"{base[0]}ie"
    if base.endswith(("at", "bl", "iz")):
        return base + "e"
    if base[-2:] in _DOUBLES:
        return base if len(base) == 3 and base[0] in "aeo" else base[:-1]
    return base + "e" if first >= len(base) and _ends_short(base) else base


def _with_i(word: str) -> str:
    is_last = word[-1] in "yY" and len(word) > 2 and word[-2] not in _VOWELS
    return word[:-1] + "i" if is_last else word


def _longest(word: str, table: dict[str, str], longest: int) -> str:
    """Return the longest suffix of the table that the word has, or an empty text."""
    return next((word[-size:] for size in range(longest, 1, -1) if word[-size:] in table), "")


def _replaced(word: str, first: int) -> str:
    suffix = _longest(word, _SUFFIXES_2, 7)
    base = word[: len(word) - len(suffix)]
    if not suffix or len(base) < first:
        return word
    if (suffix == "ogi" and not base.endswith("l")) or (suffix == "li" and base[-1:] not in _LI_ENDINGS):
        return word
    return base + _SUFFIXES_2[suffix]


def _shortened(word: str, first: int, second: int) -> str:
    suffix = _longest(word, _SUFFIXES_3, 7)
    base = word[: len(word) - len(suffix)]
    is_cut = suffix and len(base) >= (second if suffix == "ative" else first)
    return base + _SUFFIXES_3[suffix] if is_cut else word


def _cut(word: str, second: int) -> str:
    suffix = _longest(word, _SUFFIXES_4, 5)
    base = word[: len(word) - len(suffix)]
    is_cut = len(base) >= second and (suffix != "ion" or base.endswith(("s", "t")))
    return base if is_cut else word


def _without_end(word: str, first: int, second: int) -> str:
    base = word[:-1]
    if word.endswith("e") and (len(base) >= second or (len(base) >= first and not _ends_short(base))):
        return base
    return base if word.endswith("ll") and len(base) >= second else word
