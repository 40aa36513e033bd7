"""Keep a session and its store in step, and have transcripts archived.

A store or an archive that fails never stops a turn: what could not be written is written with the next call.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from compact.core.audit.archive import PrunedArchive, StorageAdapter
from compact.core.audit.artifacts import Artifact, ArtifactMetadata
from compact.core.audit.call_details import reported_cache
from compact.core.audit.records import (
    AddedMessage,
    BranchView,
    CallHistory,
    Commit,
    ModelCall,
    SessionHead,
    StoredSession,
    find_version,
)
from compact.core.audit.store import CallHistoryReader, SessionStore, StoreError, VersionConflict
from compact.core.engine.call_record import imported_history, model_call
from compact.core.engine.emitter import EventEmitter
from compact.core.engine.events import ArchivalEvent, VersionConflictEvent
from compact.core.log.log import Log
from compact.core.messages.attachments import without_bytes
from compact.core.messages.message import Message, with_id
from compact.core.messages.sensitivity import closed_ids, withheld
from compact.core.plan.economics import ModelPrices
from compact.core.plan.plan import CompactionPlan
from compact.core.plan.renderer import summary_message
from compact.core.plurals import quantity
from compact.core.session.past_plans import PlannedLine
from compact.core.session.session import Session
from compact.core.steps import SlowStep, Steps, StoreStep

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPersistence:
    """Reads and writes sessions; `archive` gets transcripts for people, redacted, and nothing that is confidential.

    `default_sensitivity` is that of tool results which do not name theirs.
    """

    store: SessionStore
    emitter: EventEmitter
    archive: StorageAdapter | None = None
    archive_name: str = "none"
    redact: Callable[[Message], Message] = lambda message: message
    tenant_id: str = ""
    prices: ModelPrices = field(default_factory=ModelPrices)
    default_sensitivity: str = "internal"

    def call_store(self, call: Callable[[], T]) -> Steps[T]:
        """Call the store; only one that may block is handed to the runner to wait for."""
        return (yield StoreStep(call, self.store)) if self.store.blocks else call()

    def catch_up(self, session: Session, render: Callable[[Session], None]) -> Steps[None]:
        """Take over what another process has written since."""
        try:
            head = yield from self.call_store(lambda: self.store.head(session.session_id))
            if head == session.stored.head:
                return
            stored = yield from self.call_store(lambda: self.store.load(session.session_id))
        except Exception as error:  # noqa: BLE001 - a store is a plug-in
            self.emitter.error(session, error, fallback="continued with what is in memory")
            return
        if stored is None:
            if session.is_deleted:
                return
            session.mark_lost()  # with its file, say
            return
        before = session.fork()
        try:
            _check_whole(stored)
            session.reload(stored)
            render(session)
        except BaseException as error:  # what a store holds may be torn, and reading it may be interrupted
            session.go_back_to(before)
            if not isinstance(error, Exception):
                raise
            self.emitter.error(session, error, fallback="continued with what is in memory")
            return
        session.take_stored_as_sent()

    def save(
        self, session: Session, estimated_tokens: int | None, before_commit: Callable[[], None] = lambda: None
    ) -> Steps[bool]:
        """Write what is new; return False if another process was quicker and the call must be made again.

        `before_commit` is called first: who waits for the prompt need not wait for the record of it.
        """
        if session.is_deleted:
            return True
        sent_before = session.last_sent
        before_commit()
        commit = session.unsaved()
        if estimated_tokens is not None:
            added = tuple(map(_as_recorded, (*session.turn.rehydrated, *session.injected)))
            call = model_call(session, sent_before, estimated_tokens, self.prices)
            commit = replace(commit, call=call, added=added)
        return (yield from self._saved(session, commit))

    def save_imported(self, session: Session, tokens: int) -> Steps[bool]:
        """Write a history that no call is made with; return False if another process was quicker."""
        if session.is_deleted:
            return True
        commit = replace(session.unsaved(), imported=imported_history(session, tokens))
        return (yield from self._saved(session, commit))

    def _saved(self, session: Session, commit: Commit) -> Steps[bool]:
        try:
            head = yield from self._commit(session, commit)
        except VersionConflict as conflict:
            self.emitter.emit(session, VersionConflictEvent, message=conflict.message)
            session.mark_outdated()
            return False
        except Exception as error:  # noqa: BLE001 - a store is a plug-in
            self.emitter.error(session, error, fallback="kept in memory, to be written with the next call")
        else:
            session.mark_saved(head)
        return True

    def _commit(self, session: Session, commit: Commit) -> Steps[SessionHead]:
        for plan in (*commit.superseded, commit.plan):
            if plan is not None:
                yield from self._store_artifacts(session, plan)
        head = yield from self.call_store(lambda: self.store.commit(commit))
        if session.is_deleted:  # meanwhile: what was just written must go too
            yield from self.call_store(lambda: self.store.delete(session.session_id))
        return head

    def flush(self, session: Session, *, fallback: str = "kept in memory") -> Steps[bool]:
        """Write what an earlier failure of the store has kept back; return False if it could not be written.

        If that is because another process was quicker, the session is marked as outdated.
        """
        commit = session.unsaved()
        if session.is_deleted or not (commit.messages or commit.plan or commit.view_ids is not None):
            return True
        try:
            session.mark_saved((yield from self._commit(session, commit)))
        except VersionConflict as conflict:
            self.emitter.emit(session, VersionConflictEvent, message=conflict.message)
            session.mark_outdated()
            return False
        except Exception as error:  # noqa: BLE001 - a store is a plug-in
            self.emitter.error(session, error, fallback=fallback)
            return False
        return True

    def report_usage(
        self,
        session: Session,
        tokens: int,
        *,
        cache_read_tokens: int | None = None,
        cache_write_tokens: int | None = None,
    ) -> Steps[None]:
        """Write what the provider counted for the newest call; a store is told of its cache only if it was."""
        told = reported_cache(cache_read_tokens, cache_write_tokens)
        try:
            yield from self.call_store(lambda: self.store.report_usage(session.session_id, tokens, **told))
        except Exception as error:  # noqa: BLE001 - a store is a plug-in
            self.emitter.error(session, error, fallback="the report is used, but not stored")

    def _store_artifacts(self, session: Session, plan: CompactionPlan) -> Steps[None]:
        """Write the content that a new plan externalises; what the stored plan names already is there."""
        for record in plan.artifacts:
            message = session.log.get(record.span.first)
            if message is None or record.artifact_id in session.stored.artifact_ids:
                continue
            metadata = ArtifactMetadata(
                artifact_id=record.artifact_id,
                session_id=session.session_id,
                message_id=message.id,
                tenant_id=self.tenant_id,
                sensitivity=record.sensitivity,
                tokens=record.tokens_before,
            )
            # The bytes of an attachment are in the log; the artifact says in which message, and who may read them.
            content = record.attachments[0].line if record.attachments else message.text
            artifact = Artifact(metadata, content)
            yield from self.call_store(lambda artifact=artifact: self.store.artifacts.store_artifact(artifact))

    def earlier_plans(self, session: Session) -> Steps[tuple[CompactionPlan, ...]]:
        """Return every plan that the store has of a session; none if it fails."""
        try:
            plans = yield from self.call_store(lambda: self.store.plans(session.session_id))
        except Exception as error:  # noqa: BLE001 - a store is a plug-in
            self.emitter.error(session, error, fallback="a prompt of an earlier plan is not recognised")
            return ()
        return tuple(entry.plan for entry in plans)

    def lines(self, session: Session) -> Steps[list[PlannedLine] | None]:
        """Return the lines that a session's calls were on, the oldest first; None if the store cannot tell."""
        reader = self.store
        if not isinstance(reader, CallHistoryReader):
            return None
        try:
            history = yield from self.call_store(lambda: reader.call_history(session.session_id))
            return _lines_in(history, session.log) if history else []
        except Exception as error:  # noqa: BLE001 - a store is a plug-in
            self.emitter.error(session, error, fallback="a prompt from before an edit is not recognised")
            return None

    def plan_of(self, session: Session, version: int) -> Steps[CompactionPlan]:
        """Return an earlier plan; version 0 is the one that changes nothing."""
        if version == 0:
            return CompactionPlan(session.session_id)
        plans = yield from self.call_store(lambda: self.store.plans(session.session_id))
        return find_version(plans, version, session.session_id).plan

    def _as_archived(self, message: Message) -> Message:
        # A copy: what code has read in an entry stays with the entry, and is not to be redacted with it.
        archived = without_bytes(withheld(message, self.default_sensitivity))
        return self.redact(with_id(archived, archived.id, archived.line))

    def archive_transcript(self, session: Session, plan: CompactionPlan) -> Steps[None]:
        """Archive what came in since the last compaction, and the summary that will stand for it."""
        archive, step = self.archive, session.plan.version + 1
        if archive is None:
            return
        try:
            entries = session.log.entries
            transcript = [self._as_archived(message) for message in entries[session.plan.archived :]]
            place = yield SlowStep(lambda: archive.save_transcript(session.session_id, transcript, step), "the archive")
            session.mark_archived(len(entries))
            self._emit_archival(session, step, place)
            if plan.summary and plan.summary.summary:
                # A user's constraint is in the summary whatever its sensitivity; it is not archived with it.
                told = plan.summary.summary.without_sources(closed_ids(entries, self.default_sensitivity))
                summary = self.redact(summary_message(replace(plan.summary, summary=told)))
                place = yield SlowStep(lambda: archive.save_summary(session.session_id, summary, step), "the archive")
                self._emit_archival(session, step, place)
        except Exception as error:  # noqa: BLE001 - an archive is a plug-in
            self.emitter.error(session, error, fallback="continued without archiving; the log has everything")
            return
        yield from self._prune_archive(session, archive)

    def _prune_archive(self, session: Session, archive: StorageAdapter) -> Steps[None]:
        """Have an archive that keeps things for a limited time remove what is too old."""
        if not isinstance(archive, PrunedArchive):
            return
        try:
            yield SlowStep(archive.prune, "the archive")
        except Exception as error:  # noqa: BLE001 - an archive is a plug-in
            self.emitter.error(session, error, fallback="nothing was removed from the archive; all was written")

    def _emit_archival(self, session: Session, step: int, place: str) -> None:
        self.emitter.emit(session, ArchivalEvent, step=step, storage_adapter=self.archive_name, place=place)


def _check_whole(stored: StoredSession) -> None:
    """Raise StoreError unless a session that was read has all of its entries."""
    found, written = len(stored.messages), stored.head.last_seq
    if found != written:
        raise StoreError(
            f"session {stored.session_id!r} was read with {found:,} of {quantity(written, 'message')}",
            hint="check the store, or restore it from a backup",
        )


def _as_recorded(added: AddedMessage) -> AddedMessage:
    """Return what was added to a prompt for its record: an attachment is in the log, and not stored with each call."""
    return replace(added, message=without_bytes(added.message))


def _lines_in(history: CallHistory, log: Log) -> list[PlannedLine]:
    """Return the lines of some calls. Branches that differ in the forms of entries alone are one."""
    views, calls = {0: BranchView(), **history.branches}, dict[tuple[int, tuple[str, ...]], list[ModelCall]]()
    for call in history.calls:
        view = views[call.branch]
        calls.setdefault((view.after_seq, view.view_ids), []).append(call)
    lines: list[PlannedLine] = []
    for (after, ids), made in sorted(calls.items(), key=lambda line: line[1][-1].number):
        later = log.entries[after : made[-1].last_seq]
        versions = sorted({call.plan_version for call in made}, reverse=True)
        lines.append(PlannedLine((*ids, *(message.id for message in later)), tuple(versions)))
    return [line for line in lines if all(log.get(message_id) for message_id in line.ids)]
