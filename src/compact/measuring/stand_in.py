"""Stands in for the model that a framework would ask for a summary: our own offline summariser, at a fixed size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from compact.assembly.rules import build_constraints
from compact.core.facts.extraction import find_facts
from compact.core.messages.message import Message
from compact.core.summary.summarizer import SummaryRequest
from compact.core.summary.summary import render_summary_text
from compact.summarizers.extractive import extractive_summary

# Chosen: what the summaries of large models have, by the recorded compactions of benchmarks/fidelity natural.
SUMMARY_TOKENS = 1_000


def summarize_offline(
    messages: Sequence[Message], count_text: Callable[[str], int], max_tokens: int = SUMMARY_TOKENS
) -> str:
    """Return a summary of messages that code writes, of at most so many tokens; the same for the same messages."""
    numbered = tuple(replace(message, id=f"m{number}") for number, message in enumerate(messages, 1))
    ledger = find_facts(numbered, constraints=build_constraints())
    request = SummaryRequest(
        messages=numbered, previous=None, max_tokens=max_tokens, count_text=count_text, ledger=ledger
    )
    text = render_summary_text(extractive_summary(request), version=1, messages=len(numbered))
    # Without its frame: the line about recall would promise what the framework does not have.
    return "\n".join(text.splitlines()[2:-1])
