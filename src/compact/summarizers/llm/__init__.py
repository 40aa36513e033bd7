"""The model-run summariser: a model is asked for what is new, part by part, and code adds it to what was known.

summarizer  LlmSummarizer: asks until the whole transcript was read, and returns the summary
templates   the prompts of each form of a summary, ours (prompts/*.md) or the user's
transcript  a history as text for a model, in parts that fit, behind a fence
prompt      one request: a template around a part of the transcript, within the window
answers     reads an answer, or recognises a refusal, a copy, half an answer
delta       what an answer adds to a summary, whatever names and forms the model chose
merging     adds a delta to what was known: nothing twice, nothing finished among the open
"""

from __future__ import annotations

from compact.summarizers.llm.summarizer import LlmSummarizer

__all__ = ["LlmSummarizer"]
