"""A store of your own: sessions in a folder, a numbered JSON file for each commit.

Eleven methods and two attributes are all that the engine needs (`compact.core.audit.store.SessionStore`); the store
below has exactly these. `compact.testing.check_session_store` says whether a store keeps the rules. Claims on summaries
and cached summaries are in the process unless the store brings its own, and recall searches what `load` returns.

    pip install compact-context
    python own_store.py
"""

import hashlib
import json
import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

from compact import CompactConfig, CompactError, CompactManager
from compact.core.audit.artifacts import Artifact, ArtifactMetadata, SecurityContext
from compact.core.audit.records import (
    BranchView,
    Commit,
    ModelCall,
    PlanVersion,
    SessionHead,
    StoredMessage,
    StoredSession,
)
from compact.core.audit.store import VersionConflict
from compact.core.log.forms import EntryForm
from compact.core.plan.plan import CompactionPlan
from compact.stores.entry_text import dump_message, load_message
from compact.testing import check_session_store, tool_run


class JsonStore:
    """Of two writers that number their commit alike, one is too late: the store is safe between processes."""

    blocks = True  # calls wait for a disk

    def __init__(self, folder: Path, *, clock=time.time) -> None:
        self._sessions, self._artifacts, self._clock = folder / "sessions", folder / "artifacts", clock

    # -- sessions ---------------------------------------------------------------------------------------------------

    def head(self, session_id: str) -> SessionHead:
        files = self._commit_files(session_id)
        return SessionHead(*read_json(files[-1])["head"]) if files else SessionHead()

    def load(self, session_id: str) -> StoredSession | None:
        commits = [read_json(file) for file in self._commit_files(session_id)]
        if not commits:
            return None
        messages, view_ids, view = [], [], BranchView()
        for commit in commits:
            new = [StoredMessage(seq, load_message(body), tokens) for seq, body, tokens in commit["messages"]]
            messages += new
            # A view comes with a commit only if the past was edited; otherwise it grows by what is new.
            view_ids = [*view_ids, *(stored.message.id for stored in new)]
            if commit["view_ids"] is not None:
                view_ids, view = commit["view_ids"], BranchView()
            view = view.with_forms(as_forms(commit["forms"]), as_forms(commit["unseen"]))
        plans = self.plans(session_id)
        return StoredSession(
            session_id=session_id,
            head=SessionHead(*commits[-1]["head"]),
            messages=tuple(messages),
            view_ids=tuple(view_ids),
            plan=plans[-1].plan if plans else CompactionPlan(session_id),
            last_report=self._last_report(session_id),
            forms=view.forms,
            unseen=view.unseen,
        )

    def commit(self, commit: Commit) -> SessionHead:
        files = self._commit_files(commit.session_id)
        data = {
            "at": self._clock(),
            "head": [commit.head_after.last_seq, commit.head_after.plan_version, commit.head_after.branch],
            "messages": [[stored.seq, dump_message(stored.message), stored.tokens] for stored in commit.messages],
            "view_ids": commit.view_ids,
            "forms": as_lists(commit.forms),
            "unseen": as_lists(commit.unseen),
            "plans": [plan.to_dict() for plan in (*commit.superseded, commit.plan) if plan],
            "call": asdict(commit.call) if commit.call else None,
        }
        file = self._folder(commit.session_id) / f"{len(files) + 1:08}.json"
        if self.head(commit.session_id) != commit.expected or not write_new(file, data):
            raise VersionConflict(f"session {commit.session_id!r} is no longer at {commit.expected}")
        return commit.head_after

    def plans(self, session_id: str) -> tuple[PlanVersion, ...]:
        commits = [read_json(file) for file in self._commit_files(session_id)]
        return tuple(PlanVersion(CompactionPlan.from_dict(plan), c["at"]) for c in commits for plan in c["plans"])

    def report_usage(
        self,
        session_id: str,
        tokens: int,
        *,
        cache_read_tokens: int | None = None,
        cache_write_tokens: int | None = None,
    ) -> None:
        newest = next((f for f in reversed(self._commit_files(session_id)) if read_json(f)["call"]), None)
        if newest:
            newest.with_suffix(".usage").write_text(str(tokens), encoding="utf-8")

    def delete(self, session_id: str) -> bool:
        for file, artifact in self._stored_artifacts():
            if artifact.metadata.session_id == session_id:
                file.unlink()
        was_there = bool(self._commit_files(session_id))
        shutil.rmtree(self._folder(session_id), ignore_errors=True)
        return was_there

    def close(self) -> None:
        pass  # nothing is open

    def _folder(self, session_id: str) -> Path:
        return self._sessions / hashed(session_id)

    def _commit_files(self, session_id: str) -> list[Path]:
        return sorted(self._folder(session_id).glob("*.json"))

    def _last_report(self, session_id: str) -> ModelCall | None:
        for file in reversed(self._commit_files(session_id)):
            usage = file.with_suffix(".usage")
            if usage.exists():
                return replace(ModelCall(**read_json(file)["call"]), tokens_reported=int(usage.read_text("utf-8")))
        return None

    # -- artifacts: content that was moved out of prompts -----------------------------------------------------------

    @property
    def artifacts(self) -> "JsonStore":
        return self

    def store_artifact(self, artifact: Artifact) -> None:
        write_new(
            self._artifact_file(artifact.metadata.tenant_id, artifact.metadata.artifact_id),
            {"at": self._clock(), "metadata": asdict(artifact.metadata), "content": artifact.content},
        )

    def retrieve_artifact(self, artifact_id: str, security: SecurityContext) -> Artifact | None:
        file = self._artifact_file(security.tenant_id, artifact_id)
        artifact = read_artifact(file) if file.exists() else None
        return artifact if artifact and self._is_visible(artifact.metadata, security) else None

    def list_artifacts(self, session_id: str, security: SecurityContext) -> tuple[ArtifactMetadata, ...]:
        known = [artifact.metadata for _, artifact in self._stored_artifacts()]
        return tuple(m for m in known if m.session_id == session_id and self._is_visible(m, security))

    def delete_artifact(self, artifact_id: str, security: SecurityContext) -> bool:
        if self.retrieve_artifact(artifact_id, security) is None:
            return False
        self._artifact_file(security.tenant_id, artifact_id).unlink()
        return True

    def _artifact_file(self, tenant_id: str, artifact_id: str) -> Path:
        return self._artifacts / f"{hashed(tenant_id)}-{hashed(artifact_id)}.json"

    def _stored_artifacts(self) -> list[tuple[Path, Artifact]]:
        oldest_first = sorted(self._artifacts.glob("*.json"), key=lambda file: read_json(file)["at"])
        return [(file, read_artifact(file)) for file in oldest_first]

    def _is_visible(self, metadata: ArtifactMetadata, security: SecurityContext) -> bool:
        return security.may_read(metadata) and not metadata.is_expired(self._clock())


def hashed(name: str) -> str:
    """Return a file name for any session or artifact id, however odd."""
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def as_lists(forms: Mapping[str, EntryForm | None]) -> dict:
    """Return the forms in which a caller has messages as plain data; None forgets one."""
    return {message_id: form and form.to_list() for message_id, form in forms.items()}


def as_forms(lists: Mapping[str, list | None]) -> dict:
    return {message_id: form and EntryForm(*form) for message_id, form in lists.items()}


def read_json(file: Path) -> dict:
    return json.loads(file.read_text(encoding="utf-8"))


def read_artifact(file: Path) -> Artifact:
    data = read_json(file)
    return Artifact(ArtifactMetadata(**data["metadata"]), data["content"])


def write_new(file: Path, data: object) -> bool:
    """Write a file, whole or not at all; return False if its name is taken."""
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f"{uuid4().hex}.tmp")
    temporary.write_text(json.dumps(data), encoding="utf-8")
    try:
        os.link(temporary, file)
    except FileExistsError:
        return False
    finally:
        temporary.unlink()
    return True


with TemporaryDirectory() as scratch:
    check_session_store(lambda clock: JsonStore(Path(scratch) / uuid4().hex, clock=clock))
print("the store keeps the rules")

config = CompactConfig(model="gpt-4o", max_context_tokens=8_000)
history = tool_run(60, words=200)
with CompactManager(config, store=JsonStore(Path("state"))) as manager:
    for length in range(1, 101, 2):
        manager.preflight("s", history[:length])

# Another process goes on where the first one stopped.
with CompactManager(config, store=JsonStore(Path("state"))) as manager:
    for length in range(101, len(history) + 1, 2):
        manager.preflight("s", history[:length])
    print(f"{len(manager.history('s'))} messages in the log, {manager.status('s').used_tokens:,} tokens in the prompt")
    print(f"plans in force: {[entry.plan.version for entry in manager.plans('s')]}")
    print(f"recalled: {manager.recall('s', 'm3').found[0].message_id}")
    try:
        manager.sessions()
    except CompactError as error:
        print(error)
