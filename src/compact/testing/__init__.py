"""What our own tests use, for yours: builders, fakes, a model server that answers by script, and conformance suites.

A suite raises AssertionError with what a plug got wrong; there is one for every socket of `compact.core.protocols`.

builders            histories as plain dicts, a token counter that counts words, a sink that records events
planning_checks     suites for token counters, strategies and constraint finders
summarizer_checks   suites for summarisers, with and without a model
store_checks        suites for stores: what the engine needs, what processes share, what readers ask
store_reader_checks what readers ask of a store
store_part_checks   suites for the parts of a store: artifacts, claims, the summary cache
store_samples       what the store suites write
archive_checks      the suite for archives
event_checks        the suite for event sinks, and a sample of every event
dialect_checks      the suite for dialects
model_server        ScriptedModel: real HTTP on loopback
model_script        the steps of a script: answers, refusals, failures, broken connections
provider_api        what the APIs of the server have in common
openai_api          Chat Completions, as the server speaks it
anthropic_api       Messages, as the server speaks it
apis                Responses, generateContent and Converse, as the server speaks them
"""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import TYPE_CHECKING

# Loaded on first use: a test that builds a history pays for nothing else.
_HOMES = {
    "builders": "RecordingSink Wire WordTokenizer as_log assistant dialogue system tool_exchange tool_run user",
    "planning_checks": "check_constraint_finder check_strategy check_tokenizer",
    "summarizer_checks": "check_model_summarizer check_summarizer",
    "store_checks": "check_compaction_store check_session_reader check_session_store check_shared_store",
    "store_part_checks": "check_artifact_store check_event_store check_summary_cache check_summary_claims",
    "archive_checks": "EmptyArchive check_archive",
    "event_checks": "check_event_sink sample_events",
    "dialect_checks": "check_dialect",
    "model_server": "ScriptedModel",
    "model_script": (
        "ReceivedRequest ScriptedAnswer ScriptedCall call_tool cut echo empty fail held malformed overlong refuse say "
        "say_json slow think truncated wrong_type"
    ),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names.split()}
_RENAMED = {"Answer": "ScriptedAnswer", "ModelRequest": "ReceivedRequest"}

__all__ = sorted(_HOME_OF)  # pyright: ignore[reportUnsupportedDunderAll]

if TYPE_CHECKING:
    from compact.testing.archive_checks import EmptyArchive as EmptyArchive
    from compact.testing.archive_checks import check_archive as check_archive
    from compact.testing.builders import RecordingSink as RecordingSink
    from compact.testing.builders import Wire as Wire
    from compact.testing.builders import WordTokenizer as WordTokenizer
    from compact.testing.builders import as_log as as_log
    from compact.testing.builders import assistant as assistant
    from compact.testing.builders import dialogue as dialogue
    from compact.testing.builders import system as system
    from compact.testing.builders import tool_exchange as tool_exchange
    from compact.testing.builders import tool_run as tool_run
    from compact.testing.builders import user as user
    from compact.testing.dialect_checks import check_dialect as check_dialect
    from compact.testing.event_checks import check_event_sink as check_event_sink
    from compact.testing.event_checks import sample_events as sample_events
    from compact.testing.model_script import ReceivedRequest as ReceivedRequest
    from compact.testing.model_script import ScriptedAnswer as ScriptedAnswer
    from compact.testing.model_script import ScriptedCall as ScriptedCall
    from compact.testing.model_script import call_tool as call_tool
    from compact.testing.model_script import cut as cut
    from compact.testing.model_script import echo as echo
    from compact.testing.model_script import empty as empty
    from compact.testing.model_script import fail as fail
    from compact.testing.model_script import held as held
    from compact.testing.model_script import malformed as malformed
    from compact.testing.model_script import overlong as overlong
    from compact.testing.model_script import refuse as refuse
    from compact.testing.model_script import say as say
    from compact.testing.model_script import say_json as say_json
    from compact.testing.model_script import slow as slow
    from compact.testing.model_script import think as think
    from compact.testing.model_script import truncated as truncated
    from compact.testing.model_script import wrong_type as wrong_type
    from compact.testing.model_server import ScriptedModel as ScriptedModel
    from compact.testing.planning_checks import check_constraint_finder as check_constraint_finder
    from compact.testing.planning_checks import check_strategy as check_strategy
    from compact.testing.planning_checks import check_tokenizer as check_tokenizer
    from compact.testing.store_checks import check_compaction_store as check_compaction_store
    from compact.testing.store_checks import check_session_reader as check_session_reader
    from compact.testing.store_checks import check_session_store as check_session_store
    from compact.testing.store_checks import check_shared_store as check_shared_store
    from compact.testing.store_part_checks import check_artifact_store as check_artifact_store
    from compact.testing.store_part_checks import check_event_store as check_event_store
    from compact.testing.store_part_checks import check_summary_cache as check_summary_cache
    from compact.testing.store_part_checks import check_summary_claims as check_summary_claims
    from compact.testing.summarizer_checks import check_model_summarizer as check_model_summarizer
    from compact.testing.summarizer_checks import check_summarizer as check_summarizer


def __getattr__(name: str) -> object:
    if name in _RENAMED:
        warnings.warn(f"compact.testing.{name} is now {_RENAMED[name]}", DeprecationWarning, stacklevel=2)
        name = _RENAMED[name]
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
