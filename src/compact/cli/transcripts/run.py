"""`compact run`: a transcript in, the compacted transcript out."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from compact.cli import screen
from compact.cli.options import AsJson, ConfigFile, File, Index, Model, TargetTokens, Window
from compact.cli.settings import in_memory, load_config
from compact.cli.transcripts.files import read_transcript, to_json, with_meta, write_transcript

if TYPE_CHECKING:
    from compact.core.engine.events import CompactionEvent
    from compact.manager import CompactManager

_SESSION = "run"

Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="PATH", help="Write to a file; JSONL if it ends in .jsonl, gzipped if in .gz."
    ),
]
Note = Annotated[str | None, typer.Option("--note", metavar="TEXT", help="A reason, which the plan records.")]


def run(
    file: File,
    output: Output = None,
    target_tokens: TargetTokens = None,
    note: Note = None,
    index: Index = 0,
    model: Model = None,
    window: Window = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Compact a transcript and print the result.

    The result is a JSON list of messages. With --json it is one object: messages, tokens_before, tokens_after, plan.
    """
    settings = in_memory(load_config(config, model=model, window=window))
    messages = read_transcript(file, index)
    events: list[CompactionEvent] = []
    with screen.spinner(f"compacting {len(messages):,} messages"):
        from compact.manager import CompactManager
        from compact.stateless import estimate_messages_tokens

        manager = CompactManager(settings, on_event=events.append)
        compacted = with_meta(manager.manual_compact(_SESSION, messages, note, target_tokens), messages)
        # Counted again from the result itself: the report says what is really there.
        tokens_after = estimate_messages_tokens(compacted, settings)
    screen.show_warnings(events)
    plan = manager.current_plan(_SESSION)
    tokens_before = plan.tokens_before if plan.version else tokens_after
    if output:
        write_transcript(output, compacted)
    if as_json:
        tokens = {"tokens_before": tokens_before, "tokens_after": tokens_after}
        screen.write_json({"messages": compacted, **tokens, "plan": plan.to_dict()})
    elif not output:
        screen.write(to_json(compacted, encoding=sys.stdout.encoding))
    screen.notice(_outcome(manager, len(messages), len(compacted), tokens_before, tokens_after))


def _outcome(manager: CompactManager, before: int, after: int, tokens_before: int, tokens_after: int) -> str:
    """Return one line: how many messages and tokens there were and are, and what each strategy did."""
    counts = _messages_by_strategy(manager)
    if not counts:
        return f"nothing to compact: {screen.quantity(after, 'message')}, {tokens_after:,} tokens"
    messages = f"{before:,} → {after:,} messages"
    tokens = f"{tokens_before:,} → {tokens_after:,} tokens ({screen.percentage(tokens_after, tokens_before)} left)"
    done = ", ".join(f"{strategy} {screen.quantity(count, 'message')}" for strategy, count in counts.items())
    return f"{messages}, {tokens}; {done}"


def _messages_by_strategy(manager: CompactManager) -> dict[str, int]:
    """Return how many messages each strategy decided about."""
    plan = manager.current_plan(_SESSION)
    records = (plan.get_action(message.id)[1] for message in manager.history(_SESSION))
    return dict(Counter(record.strategy for record in records if record))
