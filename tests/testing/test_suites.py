"""Each conformance suite notices a plug that breaks its rules, and says which; those that keep them pass elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from compact.archive.json_lines import summary_document, to_line, transcript_lines
from compact.core.audit.artifacts import Artifact
from compact.core.audit.records import Commit, PrefetchedSummary, SessionHead, StoredMessage, StoredSession
from compact.core.engine.events import CompactionErrorEvent, CompactionEvent, SummaryCreatedEvent
from compact.core.facts.constraints import Constraint
from compact.core.messages.legality import Violation
from compact.core.messages.message import Message
from compact.core.plan.plan import DropRecord, SpanReference
from compact.core.plan.strategy import CompactionProposal, PlanningContext
from compact.core.summary.summarizer import SummarizerIdentity, SummaryCacheKey, SummaryRequest
from compact.core.summary.summary import Decision, StructuredSummary
from compact.dialects import DIALECTS
from compact.dialects.anthropic import AnthropicDialect
from compact.dialects.dialect import Block, Entry
from compact.stores.memory import (
    InMemoryArtifactStore,
    InMemoryCompactionStore,
    InMemorySummaryCache,
    InMemorySummaryClaims,
)
from compact.stores.memory_events import InMemoryEventStore
from compact.testing import (
    EmptyArchive,
    RecordingSink,
    WordTokenizer,
    as_log,
    check_archive,
    check_artifact_store,
    check_compaction_store,
    check_constraint_finder,
    check_dialect,
    check_event_sink,
    check_event_store,
    check_model_summarizer,
    check_session_reader,
    check_session_store,
    check_shared_store,
    check_strategy,
    check_summarizer,
    check_summary_cache,
    check_summary_claims,
    check_tokenizer,
    tool_run,
    user,
)


def fails(words: str) -> Any:
    return pytest.raises(AssertionError, match=words)


# -- tokenizer, strategy, constraint finder --------------------------------------------------------------------------


class ByCharacters(WordTokenizer):
    """Counts a bracket for nothing at all."""

    def count_text(self, text: str) -> int:
        return len(text) + 2


class Shrinking(WordTokenizer):
    """Counts no message."""

    def count_message(self, message: Message) -> int:
        return 1


def test_tokenizer() -> None:
    with fails("nothing weighs nothing"):
        check_tokenizer(ByCharacters())
    with fails("longer messages weigh more"):
        check_tokenizer(Shrinking())


@dataclass
class DropOne:
    """Drops the first message of the remainder: another one at each call, if it counts."""

    counts: bool = False
    name: str = "drop one"
    calls: int = 0

    def propose(self, context: PlanningContext) -> Iterator[CompactionProposal]:
        self.calls += self.counts
        place = list(context.layers.remainder)[2 * self.calls]
        ids = (context.messages[place].id, context.messages[place + 1].id)
        yield CompactionProposal(DropRecord(span=SpanReference(ids), strategy=self.name, reason="to see"))


class Failing(DropOne):
    """Fails."""

    def propose(self, context: PlanningContext) -> Iterator[CompactionProposal]:
        raise ValueError("broken")


def test_strategy() -> None:
    messages = as_log([*tool_run(6), user("next")])
    check_strategy(DropOne(calls=1), messages)
    with fails("proposes something else the second time"):
        check_strategy(DropOne(counts=True), messages)
    with fails("failed"):
        check_strategy(Failing(), messages)


@dataclass(frozen=True)
class Finder:
    """Finds the word NEVER, as it is told to."""

    end: int = 5
    source: str = ""
    shift: int = 0
    of_tools: bool = False

    def find(self, text: str) -> tuple[tuple[int, int], ...]:
        start = text.lower().find("never")
        return () if start < 0 else ((start, start + self.end),)

    def standing(self, messages: Sequence[Message]) -> tuple[Constraint, ...]:
        return tuple(
            Constraint(message.text[start:end], self.source or message.id, start + self.shift)
            for message in messages
            if message.role == "user" or self.of_tools
            for start, end in self.find(message.text)
        )


@pytest.mark.parametrize(
    ("finder", "words"),
    [
        (Finder(end=500), "is not in"),
        (Finder(source="nobody"), "is no message of the history"),
        (Finder(shift=1), "word for word"),
        (Finder(of_tools=True), "was not said by a user"),
        (Finder(end=0), "is not in"),
    ],
)
def test_constraint_finder(finder: Finder, words: str) -> None:
    check_constraint_finder(Finder(), example="Never say never.")
    with fails(words):
        check_constraint_finder(finder, example="Never say never.")


def test_a_constraint_finder_finds_what_its_author_says_it_finds() -> None:
    with fails("no constraint was found"):
        check_constraint_finder(Finder(), example="Always say always.")


# -- summarisers -----------------------------------------------------------------------------------------------------


def summarizer_of(summary: object) -> Callable[[SummaryRequest], Any]:
    return lambda request: summary


@pytest.mark.parametrize(
    ("summary", "words"),
    [
        ("a text", "is a StructuredSummary, not str"),
        (StructuredSummary(), "says something"),
        (StructuredSummary(narrative="word " * 5_000), "were allowed"),
        (StructuredSummary(decisions=(Decision("move it", source_ids=("m99",)),)), "'m99' is no message"),
        (StructuredSummary(facts=["a list"]), "comes back from a store"),  # pyright: ignore[reportArgumentType]
    ],
)
def test_summarizer(summary: object, words: str) -> None:
    check_summarizer(summarizer_of(StructuredSummary(narrative="They moved the parser.")))
    with fails(words):
        check_summarizer(summarizer_of(summary))


@dataclass
class ModelSummary:
    """A summariser with an identity."""

    model: str = "small"
    changes: bool = False
    asked: int = 0

    def identity(self, form: str) -> SummarizerIdentity:
        self.asked += self.changes
        return SummarizerIdentity(self.model, f"{form} {self.asked}")

    def __call__(self, request: SummaryRequest, /) -> StructuredSummary:
        return StructuredSummary(narrative="They moved the parser.")


def test_model_summarizer() -> None:
    check_model_summarizer(ModelSummary())
    with fails("names the model"):
        check_model_summarizer(ModelSummary(model=""))
    with fails("as long as nothing changes"):
        check_model_summarizer(ModelSummary(changes=True))
    with fails("has a method `identity`"):
        check_model_summarizer(summarizer_of(StructuredSummary(narrative="x")))  # pyright: ignore[reportArgumentType]


# -- stores ----------------------------------------------------------------------------------------------------------


class Forgetful(InMemoryCompactionStore):
    """Takes commits from any head."""

    def commit(self, commit: Commit) -> SessionHead:
        return super().commit(replace(commit, expected=self.head(commit.session_id)))


class WithoutLines(InMemoryCompactionStore):
    """Loads the whole log as the line that the caller is on."""

    def load(self, session_id: str) -> StoredSession | None:
        loaded = super().load(session_id)
        return loaded and replace(loaded, view_ids=tuple(stored.message.id for stored in loaded.messages))


class Undying(InMemoryCompactionStore):
    """Keeps claims of sessions that were deleted."""

    def delete(self, session_id: str) -> bool:
        self.claims.forget = lambda session_id: None  # pyright: ignore[reportAttributeAccessIssue]
        return super().delete(session_id)


class Blind(InMemoryCompactionStore):
    """Finds nothing."""

    def search(self, session_id: str, words: str, limit: int) -> tuple[StoredMessage, ...]:
        return ()


class Unranked(InMemoryCompactionStore):
    """Finds what it should, in the order of the log."""

    def search(self, session_id: str, words: str, limit: int) -> tuple[StoredMessage, ...]:
        return tuple(sorted(super().search(session_id, words, 100), key=lambda entry: entry.seq)[:limit])


def test_store() -> None:
    with fails("is not where the session is"):
        check_session_store(lambda clock: Forgetful(clock=clock))
    with fails("the view is the line the caller is on"):
        check_compaction_store(lambda clock: WithoutLines(clock=clock))
    with fails("go with it"):
        check_shared_store(lambda clock: Undying(clock=clock))
    with fails("the beginning of a large entry is found"):
        check_session_reader(lambda clock: Blind(clock=clock))
    with fails("is about 4"):
        check_session_reader(lambda clock: Unranked(clock=clock))


def test_a_store_without_readers_passes_what_the_engine_needs() -> None:
    """An own store need not answer what nobody asks it."""
    check_session_store(lambda clock: Blind(clock=clock))
    check_shared_store(lambda clock: Blind(clock=clock))


class Overwriting(InMemoryArtifactStore):
    """Has the newest content of an id."""

    def store_artifact(self, artifact: Artifact) -> None:
        self._artifacts[artifact.metadata.tenant_id, artifact.metadata.artifact_id] = artifact


class Generous(InMemorySummaryClaims):
    """Gives every claim to everybody."""

    def claim(self, session_id: str, span_key: str, *, stale_after_seconds: float) -> bool:
        super().claim(session_id, span_key, stale_after_seconds=stale_after_seconds)
        return True


class WithoutPrefetch(InMemorySummaryClaims):
    """Prefetches for nobody."""

    def prefetched(self, session_id: str, version: int) -> PrefetchedSummary | None:
        return None


class Hoarding(InMemorySummaryCache):
    """Keeps everything for ever."""

    def get(self, key: SummaryCacheKey) -> StructuredSummary | None:
        return self.kept.get(key)

    def put(self, key: SummaryCacheKey, summary: StructuredSummary) -> None:
        self.kept[key] = summary

    def invalidate(self, key: SummaryCacheKey) -> None:
        self.kept.pop(key, None)

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.kept: dict[SummaryCacheKey, StructuredSummary] = {}


def test_parts_of_a_store() -> None:
    with fails("the first content of an id stays"):
        check_artifact_store(lambda clock: Overwriting(clock=clock))
    with fails("the second does not"):
        check_summary_claims(lambda clock: Generous(clock=clock))
    with fails("the newest counts"):
        check_summary_claims(lambda clock: WithoutPrefetch(clock=clock))
    with fails("not used for longest"):
        check_summary_cache(Hoarding)


class Forgetless(InMemoryEventStore):
    """Keeps the events of sessions that are gone."""

    def forget(self, session_id: str) -> None:
        pass


class ForEver(InMemoryEventStore):
    """Keeps events for ever."""

    def add(self, events: Any, *, keep_seconds: float) -> Any:
        return super().add(events, keep_seconds=1e12)


class Replacing(InMemoryEventStore):
    """Takes an update for the whole event."""

    def add(self, events: Any, *, keep_seconds: float) -> Any:
        for event in events:
            if known := self._events.get((event["type"], event["trace_id"], event.get("span_id", ""))):
                self._remove(known)
        return super().add(events, keep_seconds=keep_seconds)


def with_events(kind: type[InMemoryEventStore]) -> Callable[[Callable[[], float]], InMemoryCompactionStore]:
    def make(clock: Callable[[], float]) -> InMemoryCompactionStore:
        store = InMemoryCompactionStore(clock=clock)
        store.events = kind(clock=clock)
        return store

    return make


def test_events_of_a_store() -> None:
    check_event_store(with_events(InMemoryEventStore))
    with fails("its events go, and the traces that are its own"):
        check_event_store(with_events(Forgetless))
    with fails("what is too old goes"):
        check_event_store(with_events(ForEver))
    with fails("an update changes what it names"):
        check_event_store(with_events(Replacing))


# -- archive ---------------------------------------------------------------------------------------------------------


@dataclass
class DictArchive:
    """An archive of one's own: rows in a dictionary."""

    rows: dict[str, bytes] = field(default_factory=dict[str, bytes])

    def key(self, *parts: object) -> str:
        return repr(parts)

    def save_transcript(self, session_id: str, transcript: Sequence[Message], step: int) -> str:
        return self._save(transcript_lines(transcript), session_id, "transcript", step)

    def save_summary(self, session_id: str, summary: Message, step: int) -> str:
        return self._save(summary_document(summary), session_id, "summary", step)

    def save_event(self, session_id: str, event: Mapping[str, Any]) -> None:
        self.rows[self.key(session_id, "event", f"{len(self.rows):06}")] = to_line(event)

    def _save(self, data: bytes, *parts: object) -> str:
        number = 0
        while self.rows.setdefault(key := self.key(*parts, number), data) != data:
            number += 1
        return key


class OneFolder(DictArchive):
    """Has no place for sessions."""

    def key(self, *parts: object) -> str:
        return repr(parts[1:])


class Careless(DictArchive):
    """Overwrites."""

    def _save(self, data: bytes, *parts: object) -> str:
        self.rows[self.key(*parts)] = data
        return self.key(*parts)


class Reserved(DictArchive):
    """Has no time for events."""

    def save_event(self, session_id: str, event: Mapping[str, Any]) -> None:
        return None


def empty(kind: type[DictArchive]) -> Callable[[], EmptyArchive]:
    def make() -> EmptyArchive:
        archive = kind()
        return EmptyArchive(archive, lambda: dict(archive.rows))

    return make


def test_archive() -> None:
    check_archive(empty(DictArchive))
    with fails("two sessions share a place"):
        check_archive(empty(OneFolder))
    with fails("was overwritten"):
        check_archive(empty(Careless))
    with fails("events are lost"):
        check_archive(empty(Reserved))
    with fails("the transcript has the wrong name"):
        check_archive(empty(DictArchive), standard_names=True)


# -- event sinks -----------------------------------------------------------------------------------------------------


class Picky(RecordingSink):
    """Knows no errors."""

    def __call__(self, event: CompactionEvent) -> None:
        if isinstance(event, CompactionErrorEvent):
            raise TypeError("what is this?")


class Meddling(RecordingSink):
    """Writes into events."""

    def __call__(self, event: CompactionEvent) -> None:
        event.metadata["seen"] = True  # pyright: ignore[reportIndexIssue]


class Selective(RecordingSink):
    """Drops what is long."""

    def __call__(self, event: CompactionEvent) -> None:
        if not isinstance(event, SummaryCreatedEvent):
            RecordingSink.__call__(self, event)


@dataclass
class Closing:
    """Takes nothing once it is closed."""

    is_closed: bool = False

    def emit(self, event: CompactionEvent) -> None:
        if self.is_closed:
            raise RuntimeError("closed")

    def close(self) -> None:
        self.is_closed = True


def test_event_sink() -> None:
    with pytest.raises(TypeError, match="what is this"):
        check_event_sink(Picky)
    with fails("was changed"):
        check_event_sink(Meddling)
    with fails(r"of \d+ events, \d+ arrived"):
        check_event_sink(Selective, delivered=lambda sink: len(sink.events))
    with pytest.raises(RuntimeError, match="closed"):
        check_event_sink(Closing)
    with fails("returns nothing"):
        check_event_sink(lambda: lambda event: True)
    with fails("has a method `emit`"):
        check_event_sink(object)


# -- dialects --------------------------------------------------------------------------------------------------------


class Sniffing(AnthropicDialect):
    """Writes what it is given as the assistant's, the summary too."""

    def write(self, entries: Sequence[Entry]) -> Iterator[Block]:
        return super().write([{**entry, "meta": None} for entry in entries])


class Lossy(AnthropicDialect):
    """Forgets thinking."""

    def read(self, items: Sequence[Any], place: int) -> Iterator[Block]:
        for block in super().read(items, place):
            yield Block(block.items, tuple({k: v for k, v in e.items() if k != "native"} for e in block.entries))


class Lax(AnthropicDialect):
    """Finds the sample illegal."""

    def check(self, items: Sequence[Any]) -> tuple[Violation, ...]:
        return (Violation("mood", 0, "not today"),)


def test_dialect() -> None:
    thinking = {"type": "thinking", "thinking": "hm", "signature": "s"}
    reply = {"role": "assistant", "content": [thinking, {"type": "text", "text": "hello"}]}
    sample = [{"role": "user", "content": "hello"}, reply, {"role": "user", "content": "next"}]
    check_dialect(DIALECTS["anthropic"], sample)
    with fails("from their entries alone"):
        check_dialect(Lossy(), sample)
    with fails("not legal in its own dialect"):
        check_dialect(Lax(), sample)
    with fails("comes back"):
        check_dialect(Sniffing(), sample)
