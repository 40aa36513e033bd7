"""The room as a whole: every public name is there, and whoever builds a history pays for nothing else."""

from __future__ import annotations

import subprocess
import sys

import pytest

import compact.core.protocols as sockets
import compact.testing

# The suite of each socket; what a Pricer does is arithmetic of one method, which has no rule but its type.
SUITES = {
    "ArtifactStore": "check_artifact_store",
    "CallHistoryReader": "check_session_reader",
    "CompactionStore": "check_compaction_store",
    "CompactionStrategy": "check_strategy",
    "ConstraintFinder": "check_constraint_finder",
    "EventSink": "check_event_sink",
    "EventStore": "check_event_store",
    "ModelSummarizer": "check_model_summarizer",
    "Pricer": "",
    "ProviderAwareTokenizer": "check_tokenizer",
    "PrunedArchive": "check_archive",
    "SessionReader": "check_session_reader",
    "SessionStore": "check_session_store",
    "SharedStore": "check_shared_store",
    "StorageAdapter": "check_archive",
    "Summarizer": "check_summarizer",
    "SummaryCache": "check_summary_cache",
    "SummaryClaims": "check_summary_claims",
    "TracedStore": "check_event_store",
}


@pytest.mark.parametrize("name", compact.testing.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(compact.testing, name) is not None
    assert name in dir(compact.testing)


def test_there_is_no_other_name() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = compact.testing.nothing  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("socket", sockets.__all__)
def test_every_socket_has_a_suite(socket: str) -> None:
    suite = SUITES[socket]
    assert not suite or callable(getattr(compact.testing, suite))


@pytest.mark.parametrize(("old", "new"), [("Answer", "ScriptedAnswer"), ("ModelRequest", "ReceivedRequest")])
def test_earlier_names_still_work(old: str, new: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"compact.testing.{old} is now {new}"):
        found = getattr(compact.testing, old)
    assert found is getattr(compact.testing, new)


def test_a_builder_loads_no_server_and_no_suite() -> None:
    """In a process of its own: this one has loaded everything."""
    code = """
import sys
from compact.testing import user
assert user("x") == {"role": "user", "content": "x"}
heavy = {"http.server", "compact.dialects", "compact.testing.model_server", "compact.testing.store_checks", "pydantic"}
print(sorted(heavy & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
