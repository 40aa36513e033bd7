"""A span is summarised once; a summary with another note is another summary."""

from __future__ import annotations

from compact import CompactConfig, CompactManager, StructuredSummary, SummaryRequest
from compact.testing import WordTokenizer, dialogue


def test_the_same_span_with_another_note_is_summarised_again() -> None:
    notes: list[str] = []

    def writes(request: SummaryRequest) -> StructuredSummary:
        notes.append(request.note)
        return StructuredSummary(narrative=f"mind: {request.note}")

    config = CompactConfig(
        max_context_tokens=1_000,
        policy={"hard_cap_buffer": 0},
        summarizer={"prefetch": "never"},
        state={"url": "memory:"},
        storage={"adapter": "none"},
        telemetry={"exporter": "none"},
    )
    history = dialogue(20, words=20)
    with CompactManager(config, tokenizer=WordTokenizer(), summarizer=writes) as manager:
        for note in ("the prices", "the prices", "the dates"):
            manager.manual_compact("s", history, note=note)
            summary = manager.current_plan("s").summary
            assert summary is not None
            assert summary.summary is not None
            assert summary.summary.narrative == f"mind: {note}"
            manager.undo("s")
    assert notes == ["the prices", "the dates"], "an equal note is not asked for twice"
