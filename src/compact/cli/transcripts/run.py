"""`compact run`: a transcript in, the compacted transcript out."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from compact.cli import screen
from compact.cli.options import AsJson, ConfigFile, File, Focus, Index, Now, RecordedModel, TargetTokens, Window
from compact.cli.settings import for_recorded_model, in_memory, load_agent_config, without_prefetch
from compact.cli.transcripts.files import read_transcript, to_json, with_meta, write_transcript
from compact.cli.transcripts.measure import nothing_to_do

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
Note = Annotated[
    str | None, typer.Option("--note", metavar="TEXT", help="A reason, which is stored with the plan; implies --now.")
]


def run(
    file: File,
    output: Output = None,
    now: Now = False,
    target_tokens: TargetTokens = None,
    focus: Focus = None,
    note: Note = None,
    index: Index = 0,
    model: RecordedModel = None,
    window: Window = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Compact a transcript as an agent would, and print the result.

    Below the trigger nothing is compacted; --now compacts anyway. Code writes the summary, whatever the settings say:
    no model is called. The result is a JSON list of messages; if the file is a whole request, it is that request. With
    --json it is one object: messages, tokens_before, tokens_after, reason, plan.
    """
    given = load_agent_config(config, model=model, window=window)
    transcript = read_transcript(file, index)
    loaded = for_recorded_model(given, transcript.model)
    settings = without_prefetch(in_memory(loaded))
    messages, options = transcript.messages, transcript.options
    events: list[CompactionEvent] = []
    with screen.spinner(f"compacting {screen.quantity(len(messages), 'message')}"):
        from compact.manager import CompactManager
        from compact.stateless import estimate_messages_tokens

        manager = CompactManager(settings, on_event=events.append)
        is_manual = now or target_tokens is not None or bool(focus or note)
        if is_manual:
            prompt = manager.manual_compact(_SESSION, messages, note, target_tokens, focus=focus, **options)
        else:
            prompt = manager.preflight(_SESSION, messages, **options)
        compacted = with_meta(prompt, messages)
        # Counted again from the result itself: the report says what is really there.
        tokens_after = estimate_messages_tokens(compacted, settings)
    result = transcript.with_messages(compacted)
    screen.show_warnings(events)
    if loaded.summarizer.uses_model:
        screen.notice("summaries are written by code here: no model is called", label="note", style="yellow")
    plan, status = manager.current_plan(_SESSION), manager.status(_SESSION)
    tokens_before = plan.tokens_before if plan.version else tokens_after
    if output:
        write_transcript(output, result)
    if as_json:
        tokens = {"tokens_before": tokens_before, "tokens_after": tokens_after}
        reason = status.decision.reason if status.decision else ""
        screen.write_json({"messages": compacted, **tokens, "reason": reason, "plan": plan.to_dict()})
    elif not output:
        screen.write(to_json(result, encoding=sys.stdout.encoding))
    sizes = (len(messages), len(compacted)), (tokens_before, tokens_after)
    screen.notice(_outcome(manager, *sizes, is_manual=is_manual))


def _outcome(manager: CompactManager, messages: tuple[int, int], tokens: tuple[int, int], *, is_manual: bool) -> str:
    """Return one line: how many messages and tokens there were and are, and what each strategy did."""
    counts, (before, after) = _messages_by_strategy(manager), tokens
    if not counts:
        status = manager.status(_SESSION)
        reason = status.decision.reason if status.decision else ""
        return nothing_to_do(status, messages=messages[1], tokens=after, is_manual=is_manual, reason=reason)
    size = f"{messages[0]:,} → {screen.quantity(messages[1], 'message')}, {before:,} → {after:,} tokens"
    done = ", ".join(f"{strategy} {screen.quantity(count, 'message')}" for strategy, count in counts.items())
    return f"{size} ({screen.percentage(after, before)} left); {done}"


def _messages_by_strategy(manager: CompactManager) -> dict[str, int]:
    """Return how many messages each strategy decided about."""
    plan = manager.current_plan(_SESSION)
    records = (plan.get_action(message.id)[1] for message in manager.history(_SESSION))
    return dict(Counter(record.strategy for record in records if record))
