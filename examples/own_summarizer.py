"""A summariser of your own: any callable that turns a SummaryRequest into a StructuredSummary, async or not.

Ledger, checks, fallbacks and the report are the same as for ours: what it leaves out and is needed is put beside it, so
a careless one costs quality, never the task. `compact.testing.check_summarizer` says whether it keeps the rules.

    pip install compact-context
    python own_summarizer.py
"""

from compact import CompactConfig, CompactManager, StructuredSummary, SummaryRequest
from compact.testing import check_summarizer, dialogue, tool_exchange, user


async def ask_my_model(text: str) -> str:
    """Your own client goes here; this one is easily pleased."""
    return f"They talked for a while, in {len(text.splitlines())} lines."


async def summarize(request: SummaryRequest) -> StructuredSummary:
    """`messages` are new, `previous` is the summary before, `max_tokens` and `count_text` tell the room."""
    text = "\n".join(f"{message.role}: {message.text}" for message in request.messages)
    return StructuredSummary(narrative=await ask_my_model(text))


check_summarizer(summarize)
print("the summariser keeps the rules")


history = [
    user("Plan the move of the office. Never book a lorry before noon."),
    *tool_exchange("c1", "Lorry 7 is free from 9:00, lorry 12 from 13:30.", tool="lorries"),
    *dialogue(20, words=120),
]
with CompactManager(CompactConfig(model="gpt-4o", max_context_tokens=4_000), summarizer=summarize) as manager:
    prompt = manager.manual_compact("move", history)
    (report,) = manager.report("move")

print(prompt[1]["content"])
print(f"constraints that the model no longer sees: {len(report.missing_constraints)}")
