"""Conformance suites for the parts of a store: artifacts, claims, the summary cache, events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Protocol

from compact.core.audit.artifacts import ArtifactStore, SecurityContext
from compact.core.audit.records import PrefetchedSummary
from compact.core.audit.store import (
    EventStore,
    SessionStore,
    SummaryCache,
    SummaryClaims,
    TracedStore,
)
from compact.core.audit.trace_events import StoredEvent
from compact.core.summary.summarizer import SummaryCacheKey
from compact.testing.store_samples import (
    ODD_TEXTS,
    Clock,
    ManualClock,
    append_texts,
    in_threads,
    sample_artifact,
    sample_summary,
)


class MakeSummaryCache(Protocol):
    """Makes an empty cache of a size."""

    def __call__(self, *, max_entries: int, ttl_seconds: float, clock: Clock) -> SummaryCache:
        """Return an empty cache."""
        ...


def check_artifact_store(make_store: Callable[[Clock], ArtifactStore]) -> None:
    """Check what rehydration and recall rely on in a store of artifacts: who sees what, and until when.

    Args:
        make_store: Returns an empty store that goes by the clock it is given.

    Raises:
        AssertionError: The store got something wrong; the message says what.

    Example:
        >>> from compact.stores.memory import InMemoryArtifactStore
        >>> from compact.testing import check_artifact_store
        >>> check_artifact_store(lambda clock: InMemoryArtifactStore(clock=clock))
    """
    for check in _ARTIFACT_CHECKS:
        clock = ManualClock()
        check(make_store(clock), clock)


def check_summary_claims(make_claims: Callable[[Clock], SummaryClaims]) -> None:
    """Check what keeps two processes from writing the same summary.

    Args:
        make_claims: Returns claims without any, which go by the clock they are given.

    Raises:
        AssertionError: They got something wrong; the message says what.

    Example:
        >>> from compact.stores.memory import InMemorySummaryClaims
        >>> from compact.testing import check_summary_claims
        >>> check_summary_claims(lambda clock: InMemorySummaryClaims(clock=clock))
    """
    for check in _CLAIM_CHECKS:
        clock = ManualClock()
        check(make_claims(clock), clock)


def check_summary_cache(make_cache: MakeSummaryCache) -> None:
    """Check what summarisers rely on in a cache: what was used longest ago goes first, and nothing stays too long.

    Args:
        make_cache: Returns an empty cache for `max_entries`, `ttl_seconds` and `clock`.

    Raises:
        AssertionError: The cache got something wrong; the message says what.

    Example:
        >>> from compact.stores.memory import InMemorySummaryCache
        >>> from compact.testing import check_summary_cache
        >>> check_summary_cache(InMemorySummaryCache)
    """
    for check in _CACHE_CHECKS:
        clock = ManualClock()
        check(make_cache(max_entries=3, ttl_seconds=60, clock=clock), clock)


_OWNER = SecurityContext("me", "t")


def _check_artifact_round_trip(store: ArtifactStore, clock: ManualClock) -> None:
    for number, text in enumerate((*ODD_TEXTS, "long " * 100_000)):
        artifact = sample_artifact(f"art-{number}", text, tool_name=text[:50], message_id=f"m{number}", tokens=9)
        store.store_artifact(artifact)
        assert store.retrieve_artifact(f"art-{number}", _OWNER) == artifact, f"{text[:50]!r} comes back exactly"
    assert store.retrieve_artifact("art-nobody", _OWNER) is None, "what is not there is nothing"


def _check_artifacts_stay_as_they_are(store: ArtifactStore, clock: ManualClock) -> None:
    store.store_artifact(sample_artifact())
    store.store_artifact(sample_artifact())
    store.store_artifact(sample_artifact(content="other"))
    found = store.retrieve_artifact("art-1", _OWNER)
    assert found is not None
    assert found.content == "content", "the first content of an id stays"
    assert len(store.list_artifacts("s", _OWNER)) == 1, "the same artifact again is one artifact"
    in_threads(*[lambda: store.store_artifact(sample_artifact("art-race"))] * 6)
    assert len(store.list_artifacts("s", _OWNER)) == 2, "and so it is when several store it at once"


def _check_artifact_list(store: ArtifactStore, clock: ManualClock) -> None:
    for number in (3, 1, 2):
        store.store_artifact(sample_artifact(f"art-{number}"))
        clock.advance(1)
    store.store_artifact(sample_artifact("art-elsewhere", session_id="other"))
    listed = [known.artifact_id for known in store.list_artifacts("s", _OWNER)]
    assert listed == ["art-3", "art-1", "art-2"], f"a session's artifacts, oldest first, not {listed}"


def _check_artifact_tenants(store: ArtifactStore, clock: ManualClock) -> None:
    store.store_artifact(sample_artifact(content="ours"))
    everything = frozenset(f"read:{level}" for level in ("public", "internal", "confidential", "restricted"))
    for tenant in ("", "T", "t ", "u", "%", "t\x00"):
        stranger = SecurityContext("me", tenant, everything)
        assert store.retrieve_artifact("art-1", stranger) is None, f"tenant {tenant!r} reads what is not its own"
        assert store.list_artifacts("s", stranger) == (), f"tenant {tenant!r} sees what is not its own"
        assert store.delete_artifact("art-1", stranger) is False, f"tenant {tenant!r} deletes what is not its own"
    store.store_artifact(sample_artifact(content="theirs", tenant_id="u"))
    both = [store.retrieve_artifact("art-1", SecurityContext("me", tenant)) for tenant in ("t", "u")]
    assert [found and found.content for found in both] == ["ours", "theirs"], "two tenants may use the same id"
    assert store.delete_artifact("art-1", _OWNER) is True, "the owner may delete"
    assert store.retrieve_artifact("art-1", _OWNER) is None, "and then it is gone"
    assert store.retrieve_artifact("art-1", SecurityContext("me", "u")) is not None, "for the owner only"


def _check_artifact_sessions(store: ArtifactStore, clock: ManualClock) -> None:
    store.store_artifact(sample_artifact(content="ours"))
    everything = frozenset(f"read:{level}" for level in ("public", "internal", "confidential", "restricted"))
    for session_id in ("S", "s ", "other", "%", "s\x00"):
        stranger = SecurityContext("me", "t", everything, session_id)
        assert store.retrieve_artifact("art-1", stranger) is None, f"session {session_id!r} reads what is not its own"
        assert store.list_artifacts("s", stranger) == (), f"session {session_id!r} sees what is not its own"
        assert store.delete_artifact("art-1", stranger) is False, f"session {session_id!r} deletes what is not its own"
    assert store.retrieve_artifact("art-1", _OWNER.within("s")) is not None, "its own session reads it"
    assert len(store.list_artifacts("s", _OWNER.within("s"))) == 1, "and sees it"


def _check_artifact_sensitivity(store: ArtifactStore, clock: ManualClock) -> None:
    levels = ("public", "internal", "confidential", "restricted")
    for level in levels:
        store.store_artifact(sample_artifact(f"art-{level}", sensitivity=level))
    expected = {
        frozenset[str](): levels[:2],
        frozenset({"read:confidential"}): levels[:3],
        frozenset({"read:restricted"}): (*levels[:2], "restricted"),
    }
    for permissions, visible in expected.items():
        who = SecurityContext("me", "t", permissions)
        seen = tuple(level for level in levels if store.retrieve_artifact(f"art-{level}", who))
        listed = {known.sensitivity for known in store.list_artifacts("s", who)}
        assert seen == visible, f"with {set(permissions)} one sees {visible}, not {seen}"
        assert listed == set(visible), f"with {set(permissions)} one finds {visible} in the list, not {listed}"
    assert store.delete_artifact("art-restricted", _OWNER) is False, "who may not see it may not delete it"


def _check_artifact_expiry(store: ArtifactStore, clock: ManualClock) -> None:
    store.store_artifact(sample_artifact("art-short", expires_at=clock.now + 10))
    store.store_artifact(sample_artifact("art-long"))
    store.store_artifact(sample_artifact("art-never-was", expires_at=0.0))

    def visible() -> list[str]:
        return [known.artifact_id for known in store.list_artifacts("s", _OWNER)]

    assert sorted(visible()) == ["art-long", "art-short"], "an artifact is there until it expires"
    clock.advance(10)
    assert visible() == ["art-long"], "and not in the list from then on"
    assert store.retrieve_artifact("art-short", _OWNER) is None, "nor to be read"


_ARTIFACT_CHECKS = (
    _check_artifact_round_trip,
    _check_artifacts_stay_as_they_are,
    _check_artifact_list,
    _check_artifact_tenants,
    _check_artifact_sessions,
    _check_artifact_sensitivity,
    _check_artifact_expiry,
)


def _check_one_claim(claims: SummaryClaims, clock: ManualClock) -> None:
    def claim(session_id: str = "s", span_key: str = "span") -> bool:
        return claims.claim(session_id, span_key, stale_after_seconds=60)

    assert claim(), "the first gets the claim"
    assert not claim(), "the second does not"
    assert claim(span_key="other span"), "another span is free"
    assert claim(session_id="other"), "another session is free"
    assert claims.finished("s", "span") is None, "a claim is no summary"
    assert claims.wait("s", "span", timeout_seconds=0.01) is None, "waiting ends"


def _check_finished_claims(claims: SummaryClaims, clock: ManualClock) -> None:
    claims.claim("s", "span", stale_after_seconds=60)
    claims.finish("s", "span", sample_summary("\x00 \ud800 done"))
    assert claims.finished("s", "span") == sample_summary("\x00 \ud800 done"), "the summary comes back exactly"
    assert claims.wait("s", "span", timeout_seconds=1) == sample_summary("\x00 \ud800 done"), "who waits gets it"
    clock.advance(1_000)
    assert not claims.claim("s", "span", stale_after_seconds=60), "what is written is never written again"
    assert claims.finished("s", "other span") is None, "a summary belongs to one span"
    assert claims.finished("other", "span") is None, "of one session"


def _check_claims_given_up(claims: SummaryClaims, clock: ManualClock) -> None:
    claims.claim("s", "span", stale_after_seconds=60)
    claims.finish("s", "span", None)
    assert claims.wait("s", "span", timeout_seconds=5) is None, "nobody waits for a claim that was given up"
    assert claims.claim("s", "span", stale_after_seconds=60), "it is free again"
    claims.finish("s", "span", sample_summary("first"))
    claims.finish("s", "span", None)
    assert claims.finished("s", "span") == sample_summary("first"), "who gives up late takes nothing away"
    claims.finish("s", "span", sample_summary("second"))
    assert claims.finished("s", "span") == sample_summary("first"), "the first summary of a span stays"


def _check_prefetched_summaries(claims: SummaryClaims, clock: ManualClock) -> None:
    assert claims.prefetched("s", 1) is None, "nothing is prefetched yet"
    for span, text in (("older", "first"), ("newer", "second")):
        claims.claim("s", span, stale_after_seconds=60)
        claims.finish("s", span, sample_summary(text))
        claims.store_prefetched("s", span, PrefetchedSummary((f"m-{text}",), 1, sample_summary(text)))
        clock.advance(1)
    assert claims.prefetched("s", 1) == PrefetchedSummary(("m-second",), 1, sample_summary("second")), (
        "the newest counts"
    )
    assert claims.prefetched("s", 2) is None, "for the version it was written for"
    assert claims.prefetched("other", 1) is None, "of its session"
    claims.finish("s", "never claimed", sample_summary("late"))
    assert claims.finished("s", "never claimed") is None, "a claim that is gone takes no summary"


def _check_stale_claims(claims: SummaryClaims, clock: ManualClock) -> None:
    claims.claim("s", "span", stale_after_seconds=60)
    clock.advance(59)
    assert not claims.claim("s", "span", stale_after_seconds=60), "a claim holds for its time"
    clock.advance(2)
    won = in_threads(*[lambda: claims.claim("s", "span", stale_after_seconds=60)] * 6)
    assert won.count(True) == 1, f"a stale claim is given to one of six, not to {won.count(True)}"


_CLAIM_CHECKS = (
    _check_one_claim,
    _check_finished_claims,
    _check_claims_given_up,
    _check_prefetched_summaries,
    _check_stale_claims,
)


def _check_cache_keys(cache: SummaryCache, clock: ManualClock) -> None:
    keys = (
        SummaryCacheKey("hash"),
        SummaryCacheKey("hash", model="large"),
        SummaryCacheKey("hash", policy_version="large"),
    )
    for number, key in enumerate(keys):
        assert cache.get(key) is None, "an empty cache knows nothing"
        cache.put(key, sample_summary(f"{number} \x00 \ud800"))
    for number, key in enumerate(keys):
        assert cache.get(key) == sample_summary(f"{number} \x00 \ud800"), "every part of a key counts"
    cache.put(keys[0], sample_summary("new"))
    assert cache.get(keys[0]) == sample_summary("new"), "the newest summary of a key counts"
    cache.invalidate(keys[0])
    cache.invalidate(keys[0])
    assert cache.get(keys[0]) is None, "what is invalid is gone"
    assert cache.get(keys[1]) is not None, "and nothing else"


def _check_cache_size(cache: SummaryCache, clock: ManualClock) -> None:
    def known(names: str) -> str:
        return "".join(name for name in names if cache.get(SummaryCacheKey(name)))

    for name in "abc":
        cache.put(SummaryCacheKey(name), sample_summary(name))
        clock.advance(1)
    assert known("a") == "a", "three fit"
    clock.advance(1)
    cache.put(SummaryCacheKey("d"), sample_summary("d"))
    assert known("abcd") == "acd", "of four, the one that was not used for longest goes"


def _check_cache_age(cache: SummaryCache, clock: ManualClock) -> None:
    key = SummaryCacheKey("hash")
    cache.put(key, sample_summary("old"))
    clock.advance(59)
    assert cache.get(key) is not None, "a summary is good for its time"
    clock.advance(2)
    assert cache.get(key) is None, "and not longer, however often it is used"
    cache.put(key, sample_summary("new"))
    assert cache.get(key) == sample_summary("new"), "a new one is good again"


def _check_cache_race(cache: SummaryCache, clock: ManualClock) -> None:
    keys: Sequence[SummaryCacheKey] = [SummaryCacheKey(str(number % 5)) for number in range(20)]
    in_threads(*(partial(cache.put, key, sample_summary("same")) for key in keys))
    left = sum(cache.get(key) is not None for key in set(keys))
    assert left == 3, f"several may write at once, and three are left, not {left}"


_CACHE_CHECKS = (_check_cache_keys, _check_cache_size, _check_cache_age, _check_cache_race)


# -- events ---------------------------------------------------------------------------------------------------------

_A_DAY = 86_400.0


def sample_span(span_id: str = "s1", trace_id: str = "t1", **fields: Any) -> dict[str, Any]:
    """Return a span as an exporter sends it."""
    times = {"started_at": "2026-01-01T10:00:00Z", "ended_at": "2026-01-01T10:00:01.5Z"}
    return {"type": "span", "trace_id": trace_id, "span_id": span_id, "name": "a span", **times, **fields}


def check_event_store(make_store: Callable[[Clock], SessionStore]) -> None:
    """Check what the viewer relies on in a store that keeps events.

    Args:
        make_store: Returns an empty store that goes by the clock it is given.

    Raises:
        AssertionError: The store got something wrong; the message says what.

    Example:
        >>> from compact.stores.memory import InMemoryCompactionStore
        >>> from compact.testing import check_event_store
        >>> check_event_store(lambda clock: InMemoryCompactionStore(clock=clock))
    """
    for check in _EVENT_CHECKS:
        clock = ManualClock()
        store = make_store(clock)
        try:
            assert isinstance(store, TracedStore), f"{type(store).__name__} has no events"
            check(store.events, store, clock)
        finally:
            store.close()


def _ids(events: Iterable[StoredEvent]) -> list[str]:
    return [event.span_id for event in events]


def _check_events_round_trip(events: EventStore, store: SessionStore, clock: ManualClock) -> None:
    assert (events.recent(10), events.traces(), events.trace("t1"), events.count()) == ((), (), None, 0), "nothing yet"
    odd = {text: [text, {"deep": None, "n": 1.5}] for text in ODD_TEXTS}
    span = sample_span(kind="tool", status="error", data={"session_id": "s", **odd}, name="lone \ud800 null \0")
    (stored,) = events.add([span], keep_seconds=_A_DAY)
    assert stored.event() == span, "an event comes back as it was, odd texts and all"
    assert events.recent(1) == events.spans("t1") == (stored,), "and so it is read"
    known = (stored.key, stored.kind, stored.session_id, stored.is_error)
    assert known == (("span", "t1", "s1"), "tool", "s", True), f"it is found by what it says, not by {known}"
    assert (stored.started_at, stored.ended_at) == (1_767_261_600.0, 1_767_261_601.5), "times are in seconds"
    assert stored.received_at == clock.now, "it says when it was received"
    for name in ODD_TEXTS[1:]:
        events.add([sample_span(name, name, data={"session_id": name})], keep_seconds=_A_DAY)
        assert _ids(events.spans(name)) == [name], f"a trace and a span can be named {name!r}"
        found = events.traces(session_id=name)
        assert [trace.sessions for trace in found] == [(name,)], f"a session can be named {name!r}"


def _check_event_updates(events: EventStore, store: SessionStore, clock: ManualClock) -> None:
    events.add([sample_span(data={"a": 1, "b": 1}, status="error"), sample_span("s2")], keep_seconds=_A_DAY)
    before = events.recent(1)[0].number
    clock.advance(5)
    update = {"type": "span", "trace_id": "t1", "span_id": "s1", "data": {"b": 2}, "status": "ok"}
    (stored,) = events.add([{**update, "data": {"b": 0}}, update], keep_seconds=_A_DAY)
    assert stored.event() == sample_span(data={"a": 1, "b": 2}, status="ok"), "an update changes what it names"
    assert events.count() == 2, "and is no other event"
    assert _ids(events.after(before, 10)) == ["s1"], "whoever goes on reading gets it"
    assert _ids(events.recent(10)) == ["s2", "s1"], "as the newest"
    assert stored.received_at == clock.now, "with its own time"
    assert events.sessions_with_errors() == frozenset(), "an error that was updated away is none"


def _check_event_order(events: EventStore, store: SessionStore, clock: ManualClock) -> None:
    for number in range(5):
        events.add([sample_span(f"s{number}")], keep_seconds=_A_DAY)
    numbers = [event.number for event in events.recent(10)]
    assert numbers == sorted(set(numbers)), "numbers go up"
    assert _ids(events.after(0, 2)) == ["s0", "s1"], "so many, from the oldest"
    assert _ids(events.after(numbers[1], 10)) == ["s2", "s3", "s4"], "from where one was"
    assert _ids(events.recent(2)) == ["s3", "s4"], "the newest, oldest first"
    assert _ids(events.spans("t1", before=numbers[3], limit=2)) == ["s1", "s2"], "so many before one"


def _check_traces(events: EventStore, store: SessionStore, clock: ManualClock) -> None:
    own = {"type": "trace", "trace_id": "t1", "name": "a run", "group_id": "g", "metadata": {"model": "x"}}
    events.add([own, sample_span(status="error", data={"session_id": "b"})], keep_seconds=_A_DAY)
    events.add([sample_span("s2", data={"session_id": "a"}, ended_at="2026-01-01T10:00:04Z")], keep_seconds=_A_DAY)
    clock.advance(1)
    events.add([sample_span("s1", "t2", data={"session_id": "a"})], keep_seconds=_A_DAY)
    assert [trace.trace_id for trace in events.traces()] == ["t2", "t1"], "the trace updated last is first"
    assert [trace.trace_id for trace in events.traces(offset=1, limit=1)] == ["t1"], "page by page"
    assert [trace.trace_id for trace in events.traces(session_id="b")] == ["t1"], "of one session"
    assert [trace.trace_id for trace in events.traces(with_errors=True)] == ["t1"], "with errors"
    trace = events.trace("t1")
    assert trace is not None
    about = (trace.name, trace.group_id, dict(trace.metadata), trace.sessions, trace.spans, trace.errors)
    assert about == ("a run", "g", {"model": "x"}, ("a", "b"), 2, 1), f"{about}"
    assert (trace.started_at, trace.ended_at) == (1_767_261_600.0, 1_767_261_604.0), "it ends with its last span"
    going = {name: value for name, value in sample_span("s3").items() if name != "ended_at"}
    events.add([going], keep_seconds=_A_DAY)
    trace = events.trace("t1")
    assert trace is not None
    assert (trace.ended_at, trace.updated_at) == (None, clock.now), "and not before"
    assert events.sessions_with_errors() == {"b"}, "the session with the error is known"
    odd = [sample_span(f"n{n}", name=name, data={"session_id": "a"}) for n, name in enumerate(("50%", "500", "50%"))]
    events.add([*odd, sample_span("n3", name="x", data={"session_id": "a", "output": "50%"})], keep_seconds=_A_DAY)
    assert _ids(events.named("a", "50%")) == ["n0", "n2"], "the spans of a session are found by their name alone"
    assert events.named("b", "50%") == (), "of that session"


def _check_event_retention(events: EventStore, store: SessionStore, clock: ManualClock) -> None:
    events.add([sample_span("old")], keep_seconds=_A_DAY)
    clock.advance(_A_DAY - 10)
    events.add([sample_span("new")], keep_seconds=_A_DAY)
    assert _ids(events.recent(10)) == ["old", "new"], "what is not too old stays"
    clock.advance(1_000)
    events.add([], keep_seconds=_A_DAY)
    assert _ids(events.recent(10)) == ["new"], "what is too old goes"


def _check_event_deletion(events: EventStore, store: SessionStore, clock: ManualClock) -> None:
    for name in ("gone", "stays"):
        append_texts(store, "one", session_id=name)
    events.add(
        [
            {"type": "trace", "trace_id": "gone", "name": "gone"},
            sample_span("s1", "gone", data={"session_id": "gone"}),
            sample_span("tool", "gone", data={"output": "said in it"}),
            sample_span("s1", "both", data={"session_id": "gone"}),
            sample_span("s2", "both", data={"session_id": "stays"}),
            sample_span("s1", "nobody's"),
        ],
        keep_seconds=_A_DAY,
    )
    store.delete("gone")
    left = [(event.trace_id, event.span_id) for event in events.recent(10)]
    assert left == [("both", "s2"), ("nobody's", "s1")], f"its events go, and the traces that are its own: {left}"
    assert (events.traces(session_id="gone"), events.trace("gone")) == ((), None), "nothing is found of them"


def _check_events_all_or_none(events: EventStore, store: SessionStore, clock: ManualClock) -> None:
    events.add([sample_span(data={"a": 1})], keep_seconds=_A_DAY)
    before = events.recent(10)
    try:
        events.add([sample_span("s2"), sample_span(data={"a": float("inf")})], keep_seconds=_A_DAY)
    except ValueError:
        assert events.recent(10) == before, "events that cannot be kept leave everything as it was"
    else:
        raise AssertionError("a number that JSON does not have was kept")
    many = [sample_span(f"n{number}", data={"session_id": f"s{number % 7}"}) for number in range(1_200)]
    assert len(events.add(many, keep_seconds=_A_DAY)) == 1_200, "many at once"
    again = in_threads(*[lambda: len(events.add(many[:50], keep_seconds=_A_DAY))] * 4)
    assert again == [50] * 4, "several at once that send the same"
    assert events.count() == 1_201, "each is there once"


_EVENT_CHECKS: tuple[Callable[[EventStore, SessionStore, ManualClock], None], ...] = (
    _check_events_round_trip,
    _check_event_updates,
    _check_event_order,
    _check_traces,
    _check_event_retention,
    _check_event_deletion,
    _check_events_all_or_none,
)
