"""A long piece of research in one window: two hundred sources, many rounds of compaction, nothing lost.

No framework and no model: a loop of its own reads the sources, and the figures at the end come from the log itself.

    pip install compact-context
    python long_research.py
"""

from compact import CompactConfig, CompactManager
from compact.core.engine.events import CompactionCompletedEvent

SESSION = "research"
rounds: list[CompactionCompletedEvent] = []


def note(event: object) -> None:
    """Called with everything that happens; only the rounds are kept here."""
    if isinstance(event, CompactionCompletedEvent):
        rounds.append(event)
        print(f"round {len(rounds):>2}: {event.tokens_before:,} -> {event.tokens_after:,} tokens")


def source(number: int) -> str:
    """A source of some length, with one figure that no other has."""
    body = f"Volume {number} describes the tides of harbour {number} at great length. " * 30
    return f"{body}The highest tide was {number * 7 + 1000} millimetres."


with CompactManager(CompactConfig(model="gpt-4o", max_context_tokens=16_000), on_event=note) as manager:
    history: list[dict[str, object]] = [
        {"role": "user", "content": "Collect the highest tide of every harbour. Always give figures in millimetres."}
    ]
    for number in range(1, 201):
        function = {"name": "read", "arguments": f'{{"volume": {number}}}'}
        call = {"id": f"c{number}", "type": "function", "function": function}
        history.append({"role": "assistant", "content": None, "tool_calls": [call]})
        history.append({"role": "tool", "tool_call_id": f"c{number}", "content": source(number)})
        prompt = manager.preflight(SESSION, history)  # what a model would be sent

    print(f"{len(history)} messages in the history, {len(prompt)} in the last prompt")
    print(f"the constraint is still there: {'Always give figures in millimetres.' in str(prompt)}")
    found = str(manager.recall(SESSION, "harbour 17 highest tide"))
    print(f"read again, long after it left: {'1119 millimetres' in found}")
    lost = sum(counts.get("lost", 0) for report in manager.report(SESSION) for counts in report.counts.values())
    print(f"names and numbers that can no longer be had: {lost}")
