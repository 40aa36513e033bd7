"""How often recorded agents read again what a compaction had removed, with and without keeping longer what was missed.

    python benchmarks/regret.py [--window 16000] [--share 0.2] [--limit 0] [--json]

Every call of a recorded session is made again in a small window. The agent's calls are as recorded: what is kept longer
cannot change what it reads, only whether that was still in the prompt. `missed again` are regrets of what had been
missed before: no other can be avoided by keeping what was missed. Sessions that fit the window are left out.

The recordings are read from the folder that COMPACT_DATA names, or from shared/data beside this project.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from rich.console import Console
from rich.progress import track
from rich.table import Table
from transcripts import Transcript, data_folder, read_transcripts

from compact import CompactConfig, CompactManager
from compact.core.audit.regret_finder import regrets_of
from compact.core.plan.regret import Regret, count_regrets

_CHARS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Outcome:
    """One session, made again."""

    compactions: int
    regrets: tuple[Regret, ...]

    @property
    def missed_again(self) -> int:
        """Regrets of messages that had themselves brought back what was missed."""
        brought_back = {regret.found_in for regret in self.regrets}
        return sum(regret.message_id in brought_back for regret in self.regrets)


def replay(transcript: Transcript, *, window_tokens: int, share: float) -> Outcome:
    """Make every call of a recorded session again."""
    config = CompactConfig(
        max_context_tokens=window_tokens,
        tokenizer="simple",
        regret={"max_share": share} if share else {"keep_longer": False},
        state={"url": "memory:"},
        storage={"adapter": "none"},
        telemetry={"exporter": "none"},
    )
    messages, last = list(transcript.messages), len(transcript.messages) - 1
    places = [n for n, message in enumerate(messages) if n and (message["role"] == "assistant" or n == last)]
    with CompactManager(config) as manager:
        for place in places:
            manager.preflight("replayed", messages[:place])
        stored = manager.store.load("replayed")
        return Outcome(len(manager.plans("replayed")), regrets_of(stored) if stored else ())


def summed_up(outcomes: Iterable[Outcome]) -> dict[str, object]:
    """Return the figures of all sessions together."""
    done = list(outcomes)
    regrets = [regret for outcome in done for regret in outcome.regrets]
    return {
        "sessions": len(done),
        "compactions": sum(outcome.compactions for outcome in done),
        "regrets": len(regrets),
        "regrets per session": round(len(regrets) / max(1, len(done)), 2),
        "sessions with one": sum(bool(outcome.regrets) for outcome in done),
        "missed again": sum(outcome.missed_again for outcome in done),
        "tokens read again": sum(regret.tokens for regret in regrets),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--window", type=int, default=16_000, help="tokens of the window")
    parser.add_argument("--share", type=float, default=0.2, help="regret.max_share of the second run")
    parser.add_argument("--limit", type=int, default=0, help="at most so many sessions; 0 for all")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    large = [t for t in read_transcripts(data_folder()) if t.chars // _CHARS_PER_TOKEN > given.window]
    large = large[: given.limit or None]
    console = Console(stderr=True)
    runs: dict[str, list[Outcome]] = {}
    for name, share in (("off", 0.0), ("on", given.share)):
        replays = (replay(t, window_tokens=given.window, share=share) for t in large)
        runs[name] = list(track(replays, description=name, total=len(large), console=console))
    figures = {name: summed_up(outcomes) for name, outcomes in runs.items()}
    counts = count_regrets(regret for outcome in runs["off"] for regret in outcome.regrets)
    if given.json:
        print(json.dumps({**figures, "by tool": [asdict(count) for count in counts]}, indent=2))
        return
    table = Table("", *figures)
    for row in figures["off"]:
        table.add_row(row, *(str(figures[name][row]) for name in figures))
    Console().print(table)
    for count in counts:
        print(f"{count.total:5} {count.source}, {count.action} by {count.strategy}: {count.tokens:,} tokens")


if __name__ == "__main__":
    main()
