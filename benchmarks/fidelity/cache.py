"""Keeps the facts of a folder of transcripts on disk: finding them takes longer than measuring with them."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from compact.measuring import needs, recordings, specifics
from compact.measuring.needs import Commons, Need, SessionNeeds, needs_of
from compact.measuring.recordings import Recording
from fidelity.transcripts import NATURAL, cut_place, load_transcripts, read_rows, token_counts

Report = Callable[[float], None]
CHAIN_TRANSCRIPTS, CHAIN_ROUNDS = 6, 8


def cached_facts(folder: Path, report: Report = lambda share: None) -> tuple[list[SessionNeeds], ...]:
    """The facts at each transcript's cut, at each real compaction, and at each round of the longest transcripts.

    They are found once per data and definition, and read from disk from then on.
    """
    file = Path(tempfile.gettempdir()) / "compact-fidelity" / f"{_key(folder)}.json"
    if not file.exists():
        _write(file, [[_to_data(facts) for facts in part] for part in find_facts(folder, report)])
    return tuple([_from_data(data) for data in part] for part in json.loads(file.read_text(encoding="utf-8")))


def find_facts(folder: Path, report: Report) -> tuple[list[SessionNeeds], ...]:
    """Find all facts, reporting the share that is done."""
    transcripts = load_transcripts(folder)
    commons = Commons(transcripts)
    cuts: list[SessionNeeds] = []
    for number, transcript in enumerate(transcripts):
        counts = token_counts(transcript.messages)
        cut = cut_place(transcript.messages, counts)
        cuts.append(needs_of(transcript.id, transcript, transcript.messages[cut:], cut, counts, commons))
        report((number + 1) / len(transcripts))
    known = {transcript.id: transcript for transcript in transcripts}
    return cuts, _compaction_facts(folder, known, commons), _chain_facts(transcripts, commons)


def _chain_facts(transcripts: Sequence[Recording], commons: Commons) -> list[SessionNeeds]:
    """SessionNeeds at every cut but the last, chain after chain, the longest transcript first."""
    counted = [(transcript, token_counts(transcript.messages)) for transcript in transcripts]
    found: list[SessionNeeds] = []
    for transcript, counts in sorted(counted, key=lambda pair: -sum(pair[1]))[:CHAIN_TRANSCRIPTS]:
        for number in range(1, CHAIN_ROUNDS):
            cut = cut_place(transcript.messages, counts, number / CHAIN_ROUNDS)
            found.append(needs_of(transcript.id, transcript, transcript.messages[cut:], cut, counts, commons))
    return found


def _compaction_facts(folder: Path, known: dict[str, Recording], commons: Commons) -> list[SessionNeeds]:
    file = folder / f"{NATURAL}.jsonl.gz"
    found: list[SessionNeeds] = []
    for row in read_rows(file) if file.exists() else []:
        before, after = known[row["before"]], known[row["after"]]
        counts = token_counts(before.messages)
        found.append(needs_of(row["id"], before, after.messages, len(before.messages), counts, commons))
    return found


def _key(folder: Path) -> str:
    """Changes with the data and with every file that decides what a fact is."""
    digest = hashlib.sha256()
    own = [Path(__file__).with_name(name) for name in ("transcripts.py", "cache.py")]
    for path in (needs.__file__, recordings.__file__, specifics.__file__, *own):
        digest.update(Path(path).read_bytes())
    for file in sorted(folder.glob("*.jsonl.gz")):
        digest.update(f"{file.name} {file.stat().st_size} {file.stat().st_mtime_ns}".encode())
    return digest.hexdigest()[:24]


def _write(file: Path, data: Any) -> None:
    """Write whole or not at all: several runs may share the folder."""
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_suffix(f".{os.getpid()}")
    unfinished.write_text(json.dumps(data), encoding="utf-8")
    unfinished.replace(file)


def _to_data(facts: SessionNeeds) -> dict[str, Any]:
    data = asdict(facts)
    data["rare_words"] = sorted(facts.rare_words)
    data["needs"] = [
        [need.string, [sorted(near) for near in need.neighbours], need.last_role, need.last_distance]
        for need in facts.needs
    ]
    return data


def _from_data(data: dict[str, Any]) -> SessionNeeds:
    return SessionNeeds(
        **{
            **data,
            "rare_words": frozenset(data["rare_words"]),
            "lines": tuple(data["lines"]),
            "typed_lines": tuple(data["typed_lines"]),
            "needs": tuple(
                Need(string, tuple(frozenset(near) for near in neighbours), role, distance)
                for string, neighbours, role, distance in data["needs"]
            ),
        }
    )
