"""Build what is written to: the store, what it shares between processes, its events, and the archive."""

from __future__ import annotations

from pathlib import Path

from compact.archive import FilesystemArchive, Retention, S3Archive
from compact.archive.names import tenant_place
from compact.config import CompactConfig
from compact.core.audit.store import CompactionStore, SessionStore, SharedStore, TracedStore
from compact.own_folder import why_not_writable
from compact.redaction import Redactor
from compact.stores.memory import InMemoryCompactionStore, InProcessSharedStore
from compact.telemetry.worker import ExportWorker

_SQLITE = "sqlite:///"


def without_unwritable(
    config: CompactConfig, *, with_store: bool = True, with_archive: bool = True
) -> tuple[CompactConfig, str]:
    """Return settings that write only where that is possible, and what to tell the user about the rest, if any.

    Found out once, when a manager is made: a folder that is read-only would fail at every call. What the manager does
    not build from the settings, its store or its archive, is not looked at.
    """
    state, storage, reasons, kept = config.state, config.storage, dict[str, None](), list[str]()
    file = Path(state.url.removeprefix(_SQLITE).split("?")[0]) if state.url.startswith(_SQLITE) else None
    if with_store and file and (why := why_not_writable(file, is_folder=False)):
        state = state.model_copy(update={"url": "memory:"})
        reasons[why] = None
        kept.append("sessions are kept in memory, and end with this process (state.url names another place)")
    if with_archive and storage.adapter == "fs" and (why := why_not_writable(Path(storage.path), is_folder=True)):
        storage = storage.model_copy(update={"adapter": "none"})
        reasons[why] = None
        kept.append("nothing is archived (storage.path names another place)")
    usable = config.model_copy(update={"state": state, "storage": storage})
    return usable, f"{'; '.join(reasons)}: {', and '.join(kept)}" if kept else ""


def build_store(config: CompactConfig, *, read_only: bool = False) -> CompactionStore:
    """Build the store of log, plans and calls; a database is opened when it is first needed."""
    if config.state.url == "memory:":
        return InMemoryCompactionStore()
    from compact.stores.database import Database  # SQLAlchemy is only loaded where it is used
    from compact.stores.sql import SqlCompactionStore

    return SqlCompactionStore(Database(config.state.url, read_only=read_only), tenant_id=config.state.tenant_id)


def build_event_writer(config: CompactConfig, store: SessionStore, redactor: Redactor) -> ExportWorker | None:
    """Build what writes events to the store; None for a store that keeps none, or ends with this process."""
    if not (config.state.events_days and store.blocks and isinstance(store, TracedStore)):
        return None
    from compact.telemetry import event_store  # only loaded where it is used

    return event_store.build_event_writer(store.events, keep_days=config.state.events_days, redact=redactor.event)


def build_shared(store: SessionStore) -> SharedStore:
    """Return the claims and cached summaries of a store; for a store without them, some for this process alone."""
    return store if isinstance(store, SharedStore) else InProcessSharedStore()


def build_archive(config: CompactConfig) -> FilesystemArchive | S3Archive | None:
    """Build the archive of transcripts for people."""
    storage, tenant = config.storage, tenant_place(config.state.tenant_id)
    retention = Retention(storage.keep_days, storage.max_mb)
    if storage.adapter == "fs":
        return FilesystemArchive(Path(storage.path, tenant), retention=retention)
    if storage.adapter == "s3":
        return S3Archive(
            storage.bucket,
            "/".join(part for part in (storage.prefix.rstrip("/"), tenant) if part),
            kms_key_id=storage.kms_key_id,
            region=storage.region,
            endpoint_url=storage.endpoint_url,
            retention=retention,
        )
    return None
