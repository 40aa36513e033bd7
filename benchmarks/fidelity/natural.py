"""Against real compactions of a production agent: what its model wrote, and what others keep in exactly that room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from compact.measuring.needs import SessionNeeds
from compact.measuring.recordings import Wire
from compact.measuring.scores import COLUMNS, Scores, mean, score
from fidelity.cache import cached_facts
from fidelity.product import Failure
from fidelity.running import Room, keep
from fidelity.transcripts import NATURAL, load_transcripts, read_rows, text_tokens

MODEL_SUMMARY = "llm summary"
SYSTEMS = ("compact", MODEL_SUMMARY, "recency", "coverage", "prototype")
# What a message costs beyond its text: the real summary stood in one.
_FRAMING_TOKENS = 4


@dataclass(frozen=True, slots=True)
class Compaction:
    """One real compaction: what was before, and the summary that took its place."""

    messages: tuple[Wire, ...]
    summary: str
    facts: SessionNeeds

    @property
    def room(self) -> Room:
        """The size of the summary as a message."""
        return Room(text_tokens(self.summary) + _FRAMING_TOKENS, len(self.summary))


@dataclass(frozen=True, slots=True)
class NaturalOutcome:
    """What one system kept of one history."""

    system: str
    id: str
    target_tokens: int
    scores: Scores
    failures: tuple[Failure, ...]


@dataclass(frozen=True, slots=True)
class NaturalTask:
    """One system on one compaction."""

    folder: Path
    system: str
    place: int

    def __call__(self) -> NaturalOutcome:
        compaction = load_compactions(self.folder)[self.place]
        facts, room = compaction.facts, compaction.room
        kept, failures = compaction.summary, []
        if self.system != MODEL_SUMMARY:
            kept, failures = keep(self.system, compaction.messages, room, facts)
        return NaturalOutcome(self.system, facts.id, room.tokens, score(facts, kept), tuple(failures))


@lru_cache(maxsize=1)
def load_compactions(folder: Path) -> list[Compaction]:
    """Every compaction of the folder, once per process."""
    known = {transcript.id: transcript for transcript in load_transcripts(folder)}
    rows = read_rows(folder / f"{NATURAL}.jsonl.gz")
    return [
        Compaction(known[row["before"]].messages, row["summary"], facts)
        for row, facts in zip(rows, cached_facts(folder)[1], strict=True)
    ]


def natural_means(outcomes: Sequence[NaturalOutcome]) -> dict[str, dict[str, float | None]]:
    """Percentages per system."""
    systems = dict.fromkeys(outcome.system for outcome in outcomes)
    return {
        system: {
            column: mean([getattr(o.scores, column) for o in outcomes if o.system == system]) for column in COLUMNS
        }
        for system in systems
    }
