"""Eight rounds in one session through the longest transcripts: does what was kept once stay kept?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from compact.measuring.needs import SessionNeeds
from compact.measuring.recordings import Recording, Wire, content_text, is_typed, text_of
from compact.measuring.scores import Scores, score
from fidelity.cache import CHAIN_ROUNDS, cached_facts
from fidelity.product import Failure, check_output, new_manager
from fidelity.transcripts import CUT_SHARE, cut_place, load_transcripts, token_counts

BUDGET_PCT = 12.5
SUMMARY_HEAD = "<COMPACT-SUMMARY v"
# Constraints that hold for the rest of a session, each with the share of the first round's tokens it is said behind.
CONSTRAINTS = (
    (0.3, "From now on, show me the diff before you commit anything."),
    (0.6, "By the way, please never touch the files under vendor/, they are generated elsewhere."),
    (0.9, "When you are done with a step, end your answer with the word HARBOUR so that I can find it."),
)

# Chosen: where there is no room for all of a task, so much of its beginning tells what it is.
_TASK_CHARS = 60


@dataclass(frozen=True, slots=True)
class Round:
    """What one round kept."""

    transcript: str
    number: int
    tokens_before: int
    tokens_after: int
    target_tokens: int
    summary_tokens: int
    scores: Scores | None
    has_task: bool
    constraints_lost: int
    failures: tuple[Failure, ...]


@dataclass(frozen=True, slots=True)
class Chain:
    """All rounds of one transcript."""

    folder: Path
    place: int

    def __call__(self) -> list[Round]:
        transcript, facts = load_chains(self.folder)[self.place]
        messages = with_constraints(transcript.messages)
        counts = token_counts(messages)
        target = int(sum(counts) * CUT_SHARE * BUDGET_PCT / 100)
        manager = new_manager()
        rounds: list[Round] = []
        for number in range(1, CHAIN_ROUNDS + 1):
            cut = cut_place(messages, counts, number / CHAIN_ROUNDS)
            before = messages[:cut]
            after = manager.manual_compact("chained", before, target_tokens=target)
            wanted = facts[number - 1] if number <= len(facts) else None
            rounds.append(look(transcript.id, number, before, after, target, wanted))
        return rounds


@lru_cache(maxsize=1)
def load_chains(folder: Path) -> list[tuple[Recording, list[SessionNeeds]]]:
    """The longest transcripts and their facts at every cut but the last, behind which there is no future."""
    known = {transcript.id: transcript for transcript in load_transcripts(folder)}
    facts = cached_facts(folder)[2]
    per_chain = CHAIN_ROUNDS - 1
    chains = [facts[start : start + per_chain] for start in range(0, len(facts), per_chain)]
    return [(known[chain[0].id], chain) for chain in chains]


def with_constraints(messages: Sequence[Wire]) -> list[Wire]:
    """The messages, with constraints said in passing during the first round."""
    counts = token_counts(messages)
    places = [cut_place(messages, counts, share / CHAIN_ROUNDS) for share, _ in CONSTRAINTS]
    said: list[Wire] = []
    for place, message in enumerate(messages):
        said += [_typed(constraint) for at, (_, constraint) in zip(places, CONSTRAINTS, strict=True) if at == place]
        said.append(message)
    return said


def _typed(text: str) -> Wire:
    return {"role": "user", "content": text}


def look(
    name: str, number: int, before: Sequence[Wire], after: Sequence[Wire], target: int, facts: SessionNeeds | None
) -> Round:
    """Measure one round's output and hold it against the gates."""
    kept = text_of(after)
    task = next((content_text(message) for message in before if is_typed(message)), "")
    summaries = [message for message in after if SUMMARY_HEAD in content_text(message)]
    failures = check_output(name, before, after, target)
    # In the first round, cleared results may be enough.
    if len(summaries) > 1 or (number > 1 and not summaries):
        failures.append(Failure("one summary", name, f"round {number} has {len(summaries)}"))
    said = [
        constraint for _, constraint in CONSTRAINTS if any(content_text(message) == constraint for message in before)
    ]
    failures += [
        Failure("constraint", name, f"round {number} lost {constraint!r}")
        for constraint in said
        if constraint not in kept
    ]
    if task[:_TASK_CHARS] not in kept:
        failures.append(Failure("task", name, f"round {number} lost the first message, {len(task):,} characters"))
    return Round(
        transcript=name,
        number=number,
        tokens_before=sum(token_counts(before)),
        tokens_after=sum(token_counts(after)),
        target_tokens=target,
        summary_tokens=sum(token_counts(summaries)),
        scores=score(facts, kept) if facts else None,
        has_task=task in kept,
        constraints_lost=sum(constraint not in kept for constraint in said),
        failures=tuple(failures),
    )


def chains_of(folder: Path) -> list[Chain]:
    """Every chain, the longest first."""
    return [Chain(folder, place) for place in range(len(load_chains(folder)))]
