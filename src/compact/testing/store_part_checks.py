"""Conformance suites for the parts of a store: artifacts, claims, the summary cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from compact.core.audit.artifacts import ArtifactStore, SecurityContext
from compact.core.audit.records import PrefetchedSummary
from compact.core.audit.store import (
    SummaryCache,
    SummaryClaims,
)
from compact.core.summary.summarizer import SummaryCacheKey
from compact.testing.store_samples import ODD_TEXTS, Clock, ManualClock, in_threads, sample_artifact, sample_summary


class MakeSummaryCache(Protocol):
    """Makes an empty cache of a size."""

    def __call__(self, *, max_entries: int, ttl_seconds: float, clock: Clock) -> SummaryCache:
        """Return an empty cache."""
        ...


def check_artifact_store(make_store: Callable[[Clock], ArtifactStore]) -> None:
    """Check what rehydration and recall rely on in a store of artifacts: who sees what, and until when."""
    for check in _ARTIFACT_CHECKS:
        clock = ManualClock()
        check(make_store(clock), clock)


def check_summary_claims(make_claims: Callable[[Clock], SummaryClaims]) -> None:
    """Check what keeps two processes from writing the same summary."""
    for check in _CLAIM_CHECKS:
        clock = ManualClock()
        check(make_claims(clock), clock)


def check_summary_cache(make_cache: MakeSummaryCache) -> None:
    """Check what summarisers rely on in a cache: what was used longest ago goes first, and nothing stays too long."""
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
    assert 0 < left <= 3, f"several may write at once, and {left} are left"


_CACHE_CHECKS = (_check_cache_keys, _check_cache_size, _check_cache_age, _check_cache_race)
