"""See to it that no span is summarised twice, and that no two processes prefetch a session's next summary."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from compact.core.audit.records import PrefetchedSummary, SessionHead
from compact.core.audit.store import SummaryClaims
from compact.core.engine.emitter import EventEmitter
from compact.core.engine.persistence import SessionPersistence
from compact.core.plan.plan import SpanReference, SummarizationRecord
from compact.core.plan.strategy import SUMMARIZE
from compact.core.plurals import quantity
from compact.core.session.session import Session
from compact.core.steps import SlowStep, Steps
from compact.core.summary.summary import StructuredSummary

# Chosen: whoever waited in vain claims again; of all who did, one gets it.
_CLAIM_ROUNDS = 3
# The key that is claimed by whoever prefetches a session's next summary, whatever its span.
_PREFETCH = "prefetch"
# What is waited for in errors.
_WRITER = "the process that writes the summary"
# A claim that does not become stale (a hundred years, in seconds): it is released when another plan is in force.
_UNTIL_RELEASED = 100 * 365 * 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryClaiming:
    """Claims summaries before they are written; a claim is held for `claim_seconds` at most.

    Nobody waits longer than `wait_seconds` for what another process writes, not even a thread that was left behind.
    """

    claims: SummaryClaims
    persistence: SessionPersistence
    emitter: EventEmitter
    claim_seconds: float = 30.0
    wait_seconds: float = 30.0

    def write_once(
        self,
        session: Session,
        pending: SummarizationRecord,
        write: Callable[[], Steps[StructuredSummary]],
        *,
        note: str = "",
        focus: str = "",
    ) -> Steps[StructuredSummary]:
        """Return the summary of this span, note and focus: one written before, one being written, or a new one."""
        claims, session_id, hold = self.claims, session.session_id, self.claim_seconds
        key, ask = _key_of(pending.span.message_ids, pending.version, note, focus), self.persistence.call_store
        try:
            for _ in range(_CLAIM_ROUNDS):
                if (yield from ask(lambda: claims.claim(session_id, key, stale_after_seconds=hold))):
                    break
                done = yield SlowStep(self._waiting_for(session_id, key), _WRITER)
                if done:
                    return done
        except Exception as error:  # noqa: BLE001 - a store is a plug-in
            self.emitter.error(session, error, fallback="wrote the summary without a claim on it")
            return (yield from write())
        try:
            summary = yield from write()
        except Exception:
            yield from self._release(session, key, None)
            raise
        except BaseException:
            self._release_at_once(session, key)
            raise
        yield from self._release(session, key, summary)
        return summary

    def _release(self, session: Session, key: str, summary: StructuredSummary | None) -> Steps[None]:
        try:
            yield from self.persistence.call_store(lambda: self.claims.finish(session.session_id, key, summary))
        except Exception as error:  # noqa: BLE001 - a store is a plug-in
            self.emitter.error(session, error, fallback="the summary is used, but not shared")
        except BaseException:
            self._release_at_once(session, key)
            raise

    def _release_at_once(self, session: Session, key: str) -> None:
        """Release a claim of a call that was cancelled or interrupted: it cannot wait for anything any more."""
        try:
            self.claims.finish(session.session_id, key, None)
        except Exception as error:  # noqa: BLE001 - a store is a plug-in
            self.emitter.error(session, error, fallback="the claim ends by itself")

    # -- prefetched summaries ---------------------------------------------------------------------------------------

    def prefetched(self, session: Session) -> Steps[SummarizationRecord | None]:
        """Return the summary that was prefetched for this session's next version, if there is one."""
        version = _next_version(session.plan.summary)
        try:
            found = yield from self.persistence.call_store(lambda: self.claims.prefetched(session.session_id, version))
        except Exception as error:  # noqa: BLE001 - a store is a plug-in
            self.emitter.error(session, error, fallback="continued without a prefetched summary")
            return None
        if found is None or not found.message_ids:
            return None
        return SummarizationRecord(
            span=SpanReference(found.message_ids),
            strategy=SUMMARIZE,
            reason=f"{quantity(len(found.message_ids), 'old message')}, prefetched",
            version=version,
            summary=found.summary,
        )

    def store_prefetched(
        self, session: Session, pending: SummarizationRecord, written: SummarizationRecord
    ) -> Steps[None]:
        """Store what a prefetched summary stands for, unless the plan that it would follow has changed since."""
        if written.summary is None:
            return
        if not (yield from self._is_still_next(session)):
            self.emitter.notice(session, "a prefetched summary is discarded: the plan has changed since")
            return
        prefetched = PrefetchedSummary(pending.span.message_ids, pending.version, written.summary)
        key = _key_of(pending.span.message_ids, pending.version)
        yield from self.persistence.call_store(
            lambda: self.claims.store_prefetched(session.session_id, key, prefetched)
        )

    def _is_still_next(self, session: Session) -> Steps[bool]:
        """Return True if no other summary was put in force or restored since the session was read."""
        store, ask = self.persistence.store, self.persistence.call_store
        head = yield from ask(lambda: store.head(session.session_id))
        if session.is_deleted or head == SessionHead() != session.stored.head:
            return False
        if head.plan_version <= session.plan.version:
            return True
        plans = yield from ask(lambda: store.plans(session.session_id))
        since = [entry.plan for entry in plans if entry.plan.version > session.plan.version]
        version = _next_version(session.plan.summary)
        return all(plan.origin is None and _next_version(plan.summary) == version for plan in since)

    def discard_prefetched(self, session: Session, undone: SummarizationRecord | None) -> Steps[None]:
        """Discard what was prefetched on the way to a summary that was undone, and to the one after it."""
        claims, session_id, ask = self.claims, session.session_id, self.persistence.call_store
        first, last = sorted((_next_version(session.plan.summary), _next_version(undone)))
        try:
            for version in range(first, last + 1):
                found = yield from ask(lambda version=version: claims.prefetched(session_id, version))
                if found and found.message_ids:
                    key, nothing = _key_of(found.message_ids, version), PrefetchedSummary((), version, found.summary)
                    yield from ask(lambda key=key, nothing=nothing: claims.store_prefetched(session_id, key, nothing))
        except Exception as error:  # noqa: BLE001 - a store is a plug-in
            self.emitter.error(session, error, fallback="a prefetched summary may be used once more")

    def begin_prefetch(self, session: Session, *, waits: bool = False, is_once: bool = False) -> Steps[bool]:
        """Return True for the one process that is to prefetch a session's next summary.

        With `is_once` none is to after that, as long as the plan is the same: of calls that are made one after another,
        the next one finds the same summary, whichever process makes it.
        """
        claims, session_id, hold = self.claims, session.session_id, self.claim_seconds
        ask = self.persistence.call_store
        once, until = _once_on(session.plan.version), _UNTIL_RELEASED
        try:
            if is_once and not (yield from ask(lambda: claims.claim(session_id, once, stale_after_seconds=until))):
                return False
            for round_ in range(2 if waits else 1):
                if round_:
                    yield SlowStep(self._waiting_for(session_id, _PREFETCH), _WRITER)
                if (yield from ask(lambda: claims.claim(session_id, _PREFETCH, stale_after_seconds=hold))):
                    return True
        except Exception as error:  # noqa: BLE001 - a store is a plug-in
            self.emitter.error(session, error, fallback="prefetched a summary without a claim on it")
            return True
        return False

    def end_plans(self, session: Session, versions: Iterable[int]) -> Steps[None]:
        """Release what was claimed once on plans that are no longer in force."""
        claims, session_id, ask = self.claims, session.session_id, self.persistence.call_store
        try:
            for version in versions:
                yield from ask(lambda version=version: claims.finish(session_id, _once_on(version), None))
        except Exception as error:  # noqa: BLE001 - a store is a plug-in
            self.emitter.error(session, error, fallback="the claim on a former plan stays until the session is deleted")

    def end_prefetch(self, session: Session) -> Steps[None]:
        """Let others prefetch."""
        yield from self._release(session, _PREFETCH, None)

    def cancel_prefetch(self, session: Session) -> None:
        """Let others prefetch, from a call that was cancelled."""
        self._release_at_once(session, _PREFETCH)

    def prefetch_elsewhere(self, session: Session) -> Steps[Callable[[], object] | None]:
        """Return how to wait for another process that prefetches this session's next summary; None if none does."""
        claims, session_id, hold = self.claims, session.session_id, self.claim_seconds

        def is_free() -> bool:
            is_claimed = claims.claim(session_id, _PREFETCH, stale_after_seconds=hold)
            if is_claimed:  # it was only asked; in one step, so that a call that is cancelled never keeps it
                claims.finish(session_id, _PREFETCH, None)
            return is_claimed

        try:
            if (yield from self.persistence.call_store(is_free)):
                return None
        except Exception as error:  # noqa: BLE001 - a store is a plug-in
            self.emitter.error(session, error, fallback="continued without knowing who prefetches a summary")
            return None
        return self._waiting_for(session_id, _PREFETCH)

    def _waiting_for(self, session_id: str, key: str) -> Callable[[], StructuredSummary | None]:
        """Return how to wait for what another process writes."""
        return lambda: self.claims.wait(session_id, key, timeout_seconds=self.wait_seconds)


def _key_of(message_ids: tuple[str, ...], version: int, note: str = "", focus: str = "") -> str:
    """Return what makes two summaries the same: the messages they stand for, their version, note and focus."""
    asked = ("focus", note, focus) if focus else (note,) if note else ()
    text = "\0".join(("\0".join(message_ids), str(version), *asked))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _once_on(plan_version: int) -> str:
    """Return the key that is claimed by whoever prefetches a summary on a plan, where that is done once."""
    return f"{_PREFETCH} on plan {plan_version}"


def _next_version(current: SummarizationRecord | None) -> int:
    return current.version + 1 if current else 1
