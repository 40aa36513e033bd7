"""What the store suites write: messages, plans, calls, artifacts, and texts that some database does not take."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from compact.core.audit.artifacts import Artifact, ArtifactMetadata
from compact.core.audit.records import Commit, ModelCall, SessionHead, StoredMessage
from compact.core.audit.store import (
    SessionStore,
    SharedStore,
    VersionConflict,
)
from compact.core.facts.ledger import Fact, FactKind, Ledger
from compact.core.messages.entries import read_entry
from compact.core.messages.message import Message, ToolCall
from compact.core.plan.plan import (
    ClearRecord,
    CompactionPlan,
    DropRecord,
    ExternalizationRecord,
    SpanReference,
    SummarizationRecord,
)
from compact.core.summary.summary import OpenItem, StructuredSummary, ToolOutcome

Clock = Callable[[], float]
T = TypeVar("T")


# Texts that some database or encoding does not take as they are.
ODD_TEXTS = ("", "漢字 и 🧠 é", "a\x00b", "lone \ud800 half", "quote ' \" \\ %s {x} :y", "../../etc", "line\nbreak\r\t")


# What a framework may put beside the fields that we know, in every shape that JSON has.
ODD_FIELDS: dict[str, Any] = {"x": [1, 2.5, None, True, {"deep": [{"er": "\x00\ud83e"}]}], "": "no name", "漢": {}}


UNSEEN = ("summarize", "drop")
# Whatever a caller names its sessions and messages, they are kept apart.
ODD_NAMES = (*filter(None, ODD_TEXTS), "Case", "case", " space ", "x" * 500, "null", "%", "_", "\\u0000", '"\\ud800"')


@dataclass(slots=True)
class ManualClock:
    """A clock that stands still until it is told how much time has passed."""

    now: float = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        """Let some time pass."""
        self.now += seconds


def stored_messages(*originals: object, after: int = 0, tokens: int = 7) -> tuple[StoredMessage, ...]:
    """Log entries as the engine would hand them to a store, with the ids `m1`, `m2`, … by their place."""
    read = read_entry
    return tuple(
        StoredMessage(seq, replace(read(original, "suite"), id=f"m{seq}"), tokens)
        for seq, original in enumerate(originals, after + 1)
    )


def in_threads(*actions: Callable[[], T]) -> list[T]:
    """Run actions at the same time, six at most, and return what they return."""
    with ThreadPoolExecutor(6) as pool:
        running = [pool.submit(action) for action in actions]
        return [future.result() for future in running]


def as_shared(store: object) -> SharedStore:
    """Return a store as one that processes share; raise AssertionError if it is none."""
    assert isinstance(store, SharedStore), f"{type(store).__name__} has no claims and summaries to share"
    return store


def user_entry(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def append_texts(store: SessionStore, *texts: str, session_id: str = "s", **more: Any) -> SessionHead:
    """Append messages to a session, wherever it stands."""
    head = store.head(session_id)
    entries = stored_messages(*map(user_entry, texts), after=head.last_seq)
    return store.commit(Commit(session_id=session_id, expected=head, messages=entries, **more))


def sample_call(**fields: Any) -> ModelCall:
    usual: dict[str, Any] = {
        "turn_number": 1,
        "plan_version": 0,
        "summary_version": 0,
        "last_seq": 2,
        "messages": 2,
        "evicted": 0,
        "tokens_estimated": 14,
    }
    return ModelCall(**(usual | fields))


def sample_plan(version: int = 1, session_id: str = "s") -> CompactionPlan:
    """Return a plan with a record of each kind, and texts that are hard to keep."""
    about: dict[str, Any] = {"strategy": "suite", "tokens_before": 9, "tokens_after": 2}
    odd = "\x00 \ud800 漢"
    kept = {"kept": ((0, 3), (9, 12)), "preserved_fields": {"status": odd}, "kept_arguments": ((2, 40),)}
    records = (
        ClearRecord(span=SpanReference(("m1",)), reason=odd, **kept, **about),
        SummarizationRecord(
            span=SpanReference(("m2", "m3")), reason="", version=3, max_tokens=50, summary=sample_summary(odd), **about
        ),
        ExternalizationRecord(span=SpanReference(("m4",)), reason="", artifact_id="art-1", preview=odd, **about),
        DropRecord(span=SpanReference(("m5",)), reason="", **about),
    )
    return CompactionPlan(session_id, version, records, ("m1",), "because", 45, 10, origin=0, held=True)


def sample_summary(text: str) -> StructuredSummary:
    outcomes, items = (ToolOutcome("read", text, ("m2",)),), (OpenItem(text, "high", ("m3",)),)
    ledger = Ledger((Fact(FactKind.TASK, text, source_ids=("m1",)), Fact(FactKind.FILE, text, "modified")))
    return StructuredSummary(ledger=ledger, facts=(text, "two"), tool_outcomes=outcomes, open_items=items)


def sample_artifact(artifact_id: str = "art-1", content: str = "content", **known: Any) -> Artifact:
    usual: dict[str, Any] = {"session_id": "s", "message_id": "m1", "tenant_id": "t"}
    return Artifact(ArtifactMetadata(artifact_id=artifact_id, **{**usual, **known}), content)


def raises_conflict(action: Callable[[], object]) -> bool:
    try:
        action()
    except VersionConflict:
        return True
    return False


def odd_originals() -> list[object]:
    """Return messages in every shape that a caller may hand in."""
    function = {"name": "read", "arguments": '{"path": "\\ud800"}', "x_more": 1}
    calls = [{"id": "c1", "type": "function", "function": function, "index": 0}]
    parts = [{"type": "text", "text": "part \x00"}, {"type": "image_url", "image_url": {"url": "data:x"}, "n": 1.5}]
    return [
        *({"role": "user", "content": text} for text in ODD_TEXTS),
        {"role": "assistant", "content": None, "tool_calls": calls, "refusal": None, **ODD_FIELDS},
        {"role": "tool", "tool_call_id": "c1", "content": parts, "name": "read", "meta": {"protected": True}},
        {"content": "fields in another order", "id": "own-id", "role": "user"},
        *(Message("user", text, id="own", meta={"label": text, "n": [1, None]}) for text in ODD_TEXTS),
        Message("assistant", None, (ToolCall("c2", "read", '{"a": "\ud800"}'), ToolCall("c3", "write"))),
        Message("tool", ({"type": "text", "text": "漢"},), tool_call_id="c2", name="read"),
    ]


def append_under_odd_names(store: SessionStore) -> None:
    for name in ODD_NAMES:
        entry = stored_messages(user_entry(f"in {name}"))[0]
        named = replace(entry, message=replace(entry.message, id=name))
        commit = Commit(
            session_id=name, expected=SessionHead(), messages=(named,), view_ids=(name,), call=sample_call()
        )
        store.commit(commit)


def append_large_entries(store: SessionStore) -> list[int]:
    words = " ".join(f"word{number}" for number in range(200_000))
    texts = (f"needle {words}", "x" * 3_000_000, "漢" * 500_000)
    append_texts(store, *texts)
    return [len(text) for text in texts]
