"""What every adapter must have told the manager, beyond what the scenario checks."""

from __future__ import annotations

from adapters.scenario import TOOL_SCHEMA, Watch
from compact import CompactManager
from compact.core.engine.events import TokenEstimateEvent
from compact.tokens import get_tokenizer

# What every scripted model says that its provider's cache had of a prompt.
CACHED_TOKENS = 100


def usage_is_told(watch: Watch, manager: CompactManager, session_id: str) -> None:
    """What the provider counted has arrived, call by call, with what its cache served."""
    calls = manager.model_calls(session_id)
    assert [call.tokens_reported for call in calls] == watch.tokens
    assert {call.details.get("cache_read_tokens") for call in calls} == {CACHED_TOKENS}


def seen_and_counted(watch: Watch, manager: CompactManager, session_id: str) -> None:
    """The tag has arrived in the log, its message is in the prompt untouched, and what goes out beside is counted."""
    tagged = [message for message in manager.history(session_id) if message.meta.get("protected")]
    assert [message.text for message in tagged] == [watch.scenario.protected]
    assert any(slot.message is tagged[0] for slot in manager.prompt(session_id).slots)
    first = watch.sink.of(TokenEstimateEvent)[0]
    counter = get_tokenizer(watch.model)
    assert first.breakdown["tools_schema"] > counter.count_tools([TOOL_SCHEMA]) / 2
    assert first.breakdown["system"] >= counter.count_text(watch.scenario.instructions)
