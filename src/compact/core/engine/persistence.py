"""Keeps a session and its store in step, has transcripts archived, and sees to it that no span is summarised twice.

A store or an archive that fails never stops a turn: what could not be written is written with the next call.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from compact.core.audit.archive import StorageAdapter
from compact.core.audit.artifacts import Artifact, ArtifactMetadata
from compact.core.audit.records import PreparedSummary, SessionHead
from compact.core.audit.store import CompactionStore, VersionConflict
from compact.core.engine.call_record import beside_log, model_call
from compact.core.engine.emitter import Announcer
from compact.core.engine.session import Session
from compact.core.errors import CompactError
from compact.core.log.messages import Message
from compact.core.plan.layers import KeepRules
from compact.core.plan.plan import CompactionPlan, SpanReference, SummarizationRecord
from compact.core.plan.renderer import summary_message
from compact.core.plan.strategy import SUMMARIZE
from compact.core.steps import Trip
from compact.core.summary.summary import StructuredSummary

T = TypeVar("T")
_NOWHERE = SessionHead(last_seq=-1)
# Whoever waited in vain asks again: of all who did, one may write.
_CLAIM_ROUNDS = 3
# What is claimed by who writes a session's next summary ahead, whatever its span.
_AHEAD = "ahead"


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeper:
    """The trips between a session and what outlives it."""

    store: CompactionStore
    announcer: Announcer
    adapter: StorageAdapter | None = None
    adapter_name: str = "none"
    redact: Callable[[Message], Message] = lambda message: message
    tenant_id: str = ""
    claim_seconds: float = 30.0
    rules: KeepRules = field(default_factory=KeepRules)

    def ask(self, call: Callable[[], T]) -> Trip[T]:
        """Call the store; only one that may wait is handed to the door to wait for."""
        return (yield call) if self.store.blocks else call()

    def catch_up(self, session: Session, render: Callable[[Session], None]) -> Trip[None]:
        """Take over what another process has written since."""
        try:
            head = yield from self.ask(lambda: self.store.head(session.session_id))
            if head == session.head:
                return
            stored = yield from self.ask(lambda: self.store.load(session.session_id))
        except Exception as error:
            self.announcer.failed(session, error, fallback="went on with what is in memory")
            return
        if stored is None:
            # The store has lost the session (with its file, say): it gets all of it again from memory.
            session.head, session.has_branched = SessionHead(), True
            return
        budget = session.budget
        session.become(Session.resumed(stored))
        session.budget = budget
        render(session)

    def save(self, session: Session, estimated_tokens: int | None) -> Trip[bool]:
        """Write down what is new; False if somebody else was quicker and the call must be made again."""
        commit = session.unsaved(None)
        if estimated_tokens is not None:
            call = model_call(session, estimated_tokens, self.rules)
            commit = replace(commit, call=call, beside=beside_log(session))
        try:
            yield from self._store_artifacts(session, commit.plan)
            session.saved((yield from self.ask(lambda: self.store.commit(commit))))
        except VersionConflict as conflict:
            self.announcer.conflicted(session, conflict)
            session.head = _NOWHERE
            return False
        except Exception as error:
            self.announcer.failed(session, error, fallback="kept in memory, to be written with the next call")
        return True

    def flush(self, session: Session) -> Trip[None]:
        """Write what an earlier failure of the store has kept back."""
        commit = session.unsaved(None)
        if commit.messages or commit.plan or commit.view_ids is not None:
            yield from self.save(session, None)

    def report_usage(self, session: Session, tokens: int) -> Trip[None]:
        """Note what the provider counted for the newest call."""
        try:
            yield from self.ask(lambda: self.store.report_usage(session.session_id, tokens))
        except Exception as error:
            self.announcer.failed(session, error, fallback="the report is used, but not written down")

    def _store_artifacts(self, session: Session, plan: CompactionPlan | None) -> Trip[None]:
        """Put away what a new plan moves out of the prompt."""
        for record in plan.externalizations if plan else ():
            message = session.thread.get(record.span.first)
            if message is None:
                continue
            known = ArtifactMetadata(
                artifact_id=record.artifact_id,
                thread_id=session.session_id,
                message_id=message.id,
                tenant_id=self.tenant_id,
                sensitivity=record.sensitivity,
                tokens=record.tokens_before,
            )
            artifact = Artifact(known, message.text)
            yield from self.ask(lambda artifact=artifact: self.store.artifacts.store_artifact(artifact))

    def plan_of(self, session: Session, version: int) -> Trip[CompactionPlan]:
        """An earlier plan; version 0 is the one that changes nothing."""
        if version == 0:
            return CompactionPlan(session.session_id)
        plans = yield from self.ask(lambda: self.store.plans(session.session_id))
        found = next((entry.plan for entry in plans if entry.plan.version == version), None)
        if found is None:
            known = ", ".join(str(entry.plan.version) for entry in plans) or "none"
            raise CompactError(
                f"session {session.session_id!r} has no plan version {version}", hint=f"its versions are: 0, {known}"
            )
        return found

    def archive(self, session: Session, plan: CompactionPlan) -> Trip[None]:
        """Write the transcript as it is before the compaction, and the summary that will stand for it."""
        adapter, step = self.adapter, session.plan.version + 1
        if adapter is None:
            return
        try:
            transcript = [self.redact(message) for message in session.thread.log]
            place = yield lambda: adapter.save_transcript(session.session_id, transcript, step)
            self.announcer.archived(session, step=step, adapter=self.adapter_name, place=place)
            if plan.summary and plan.summary.summary:
                summary = self.redact(summary_message(plan.summary))
                place = yield lambda: adapter.save_summary(session.session_id, summary, step)
                self.announcer.archived(session, step=step, adapter=self.adapter_name, place=place)
        except Exception as error:
            self.announcer.failed(session, error, fallback="went on without archiving; the log has everything")

    def summary_once(
        self,
        session: Session,
        pending: SummarizationRecord,
        write: Callable[[], Trip[StructuredSummary]],
        *,
        note: str = "",
    ) -> Trip[StructuredSummary]:
        """Use the summary of this span (and note) if somebody has written it, wait for who is at it, or write it."""
        claims, session_id, key = self.store.claims, session.session_id, _span_key(pending, note)
        hold = self.claim_seconds
        try:
            for _ in range(_CLAIM_ROUNDS):
                if (yield from self.ask(lambda: claims.claim(session_id, key, stale_after_seconds=hold))):
                    break
                done = yield from self.ask(lambda: claims.wait(session_id, key, timeout_seconds=hold))
                if done:
                    return done
        except Exception as error:
            self.announcer.failed(session, error, fallback="writes the summary without asking who else does")
            return (yield from write())
        try:
            summary = yield from write()
        except Exception:
            yield from self._give_back(session, key, None)
            raise
        yield from self._give_back(session, key, summary)
        return summary

    def prepared(self, session: Session) -> Trip[SummarizationRecord | None]:
        """The summary that was written ahead for this session's next version, if there is one."""
        version = _next_version(session.plan.summary)
        try:
            found = yield from self.ask(lambda: self.store.claims.prepared(session.session_id, version))
        except Exception as error:
            self.announcer.failed(session, error, fallback="went on without a summary written ahead")
            return None
        if found is None or not found.message_ids:
            return None
        return SummarizationRecord(
            span=SpanReference(found.message_ids),
            strategy=SUMMARIZE,
            reason=f"{len(found.message_ids):,} old messages, summarised ahead of time",
            version=version,
            summary=found.summary,
        )

    def note_prepared(self, session: Session, pending: SummarizationRecord, written: SummarizationRecord) -> Trip[None]:
        """Remember what a summary written ahead stands for, unless the plan that it would follow is history by now."""
        if written.summary is None:
            return
        if not (yield from self._is_still_next(session)):
            self.announcer.notice(session, "a summary written ahead is thrown away: the plan has changed since")
            return
        known = PreparedSummary(pending.span.message_ids, pending.version, written.summary)
        claims, session_id = self.store.claims, session.session_id
        yield from self.ask(lambda: claims.prepare(session_id, _span_key(pending), known))

    def _is_still_next(self, session: Session) -> Trip[bool]:
        """True if a summary that follows this session's may still come: nobody wrote one, nothing was brought back."""
        head = yield from self.ask(lambda: self.store.head(session.session_id))
        if head == SessionHead() != session.head:
            return False  # deleted
        if head.plan_version <= session.plan.version:
            return True
        plans = yield from self.ask(lambda: self.store.plans(session.session_id))
        since = [entry.plan for entry in plans if entry.plan.version > session.plan.version]
        version = _next_version(session.plan.summary)
        return all(plan.origin is None and _next_version(plan.summary) == version for plan in since)

    def throw_away_prepared(self, session: Session, taken_back: SummarizationRecord | None) -> Trip[None]:
        """Forget what was written ahead on the way to a summary that was taken back, and to the one after it."""
        claims, session_id = self.store.claims, session.session_id
        first, last = sorted((_next_version(session.plan.summary), _next_version(taken_back)))
        try:
            for version in range(first, last + 1):
                found = yield from self.ask(lambda version=version: claims.prepared(session_id, version))
                if found and found.message_ids:
                    key, nothing = _key_of(found.message_ids, version), PreparedSummary((), version, found.summary)
                    yield from self.ask(lambda key=key, nothing=nothing: claims.prepare(session_id, key, nothing))
        except Exception as error:
            self.announcer.failed(session, error, fallback="a summary written ahead may be used once more")

    def begin_ahead(self, session: Session, *, waits: bool = False) -> Trip[bool]:
        """True for the one, of all processes, that is to write a session's next summary ahead."""
        claims, session_id, hold = self.store.claims, session.session_id, self.claim_seconds
        try:
            for round_ in range(2 if waits else 1):
                if round_:
                    yield from self.ask(lambda: claims.wait(session_id, _AHEAD, timeout_seconds=hold))
                if (yield from self.ask(lambda: claims.claim(session_id, _AHEAD, stale_after_seconds=hold))):
                    return True
        except Exception as error:
            self.announcer.failed(session, error, fallback="prepares a summary without asking who else does")
            return True
        return False

    def end_ahead(self, session: Session) -> Trip[None]:
        """Let others write ahead."""
        yield from self._give_back(session, _AHEAD, None)

    def ahead_elsewhere(self, session: Session) -> Trip[Callable[[], object] | None]:
        """How to wait for another process that writes this session's next summary ahead; None if none does."""
        claims, session_id, hold = self.store.claims, session.session_id, self.claim_seconds
        try:
            if (yield from self.ask(lambda: claims.claim(session_id, _AHEAD, stale_after_seconds=hold))):
                yield from self.ask(lambda: claims.finish(session_id, _AHEAD, None))
                return None
        except Exception as error:
            self.announcer.failed(session, error, fallback="went on without asking who is preparing a summary")
            return None
        return lambda: claims.wait(session_id, _AHEAD, timeout_seconds=hold)

    def _give_back(self, session: Session, key: str, summary: StructuredSummary | None) -> Trip[None]:
        try:
            yield from self.ask(lambda: self.store.claims.finish(session.session_id, key, summary))
        except Exception as error:
            self.announcer.failed(session, error, fallback="the summary is used, but not shared")


def _span_key(record: SummarizationRecord, note: str = "") -> str:
    """What makes two summaries the same: the messages they stand for, the version they are, and what they mind."""
    return _key_of(record.span.message_ids, record.version, note)


def _key_of(message_ids: tuple[str, ...], version: int, note: str = "") -> str:
    text = "\0".join((*message_ids, str(version), *([note] if note else ())))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _next_version(standing: SummarizationRecord | None) -> int:
    return standing.version + 1 if standing else 1
