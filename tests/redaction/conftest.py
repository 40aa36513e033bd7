"""The corpora, read once: secrets are made at run time, so that none is stored in the repository."""

from __future__ import annotations

import random
import re
import string
from dataclasses import dataclass
from pathlib import Path

import pytest

_HERE = Path(__file__).parent
_ALPHABETS = {
    "alnum": string.ascii_letters + string.digits,
    "alpha": string.ascii_letters,
    "b64": string.ascii_letters + string.digits + "+/",
    "b64url": string.ascii_letters + string.digits,
    "digits": string.digits,
    "hex": "0123456789abcdef",
    "upper": "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
    "word": string.ascii_letters + string.digits + "_-",
}


@dataclass(frozen=True, slots=True)
class Secret:
    """One line of the corpus: a text, and the parts of it that must not get out."""

    name: str
    text: str
    parts: tuple[str, ...]


def make_secret(line: str) -> Secret:
    """The secret that a line describes; the same one in every run."""
    name, template = line.split("\t")
    chance = random.Random(name)

    def fill(match: re.Match[str]) -> str:
        return "".join(chance.choices(_ALPHABETS[match[1]], k=int(match[2])))

    filled = re.sub(r"\{(\w+):(\d+)\}", fill, template).replace("\\n", "\n")
    text = filled.replace("[[", "").replace("]]", "")
    return Secret(name, text, tuple(re.findall(r"\[\[(.*?)\]\]", filled, re.DOTALL)) or (text,))


def _lines(name: str) -> list[str]:
    lines = (_HERE / name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("# ")]


@pytest.fixture(scope="session")
def secrets() -> list[Secret]:
    return [make_secret(line) for line in _lines("corpus_secrets.txt")]


@pytest.fixture(scope="session")
def lookalikes() -> list[str]:
    return [line.replace("\\n", "\n") for line in _lines("corpus_lookalikes.txt")]
