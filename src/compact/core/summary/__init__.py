"""The one summary of a prompt: as data, as text, fitted into its room, and checked against its sources.

summary       the summary as structure, and its text in the prompt
parsing       a summary's text, read back into its structure
summarizer    the sockets for what writes it: Summarizer, and ModelSummarizer for models
span_index    where what stands in the history that a summary is made of
writing       how a summary came about: by whom, and what that took
fitting       cuts a summary to the room there is, required facts last
focus         what a person wants kept first, and how much of a text is about it
verification  what a summary lacks, and what it says that no source has
"""

from __future__ import annotations

from typing import Any

from compact.core.former_names import former_name


def __getattr__(name: str) -> Any:
    """Return a name of the module that this room was once."""
    return former_name(__name__, name)
