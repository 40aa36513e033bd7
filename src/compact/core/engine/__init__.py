"""The way of a call.

engine         the steps of preflight, manual compaction, restore and prefetch
trigger        whether to compact, why, and how far
compaction     plan, have the summary written, put the plan in force
summarization  write a summary, check it, fall back
prefetch       summaries before they are needed
claims         no span is summarised twice
persistence    session and store in step; archiving
pricing        prices of compactions
events         every event, as frozen data
event_spec     what is declared of an event: severity, sentence, metrics
emitter        emit the events of a session
status         how full the window is, and with what
call_record    what is stored of a model call
"""

from __future__ import annotations

from typing import Any

from compact.core.former_names import former_name


def __getattr__(name: str) -> Any:
    """Return a name of the module that this room was once."""
    return former_name(__name__, name)
