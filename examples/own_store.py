"""A store of your own: sessions in memory, and a line in a file for everything that is written.

A store keeps log, plans and model calls; `compact.testing.check_compaction_store` says whether it keeps the rules, and
`check_store_for_engine` whether it keeps those that the engine needs. This one adds an audit file to the store that
comes with the package.

    pip install compact-context
    python own_store.py
"""

import json
from pathlib import Path

from compact import CompactConfig, CompactManager
from compact.core.audit.records import Commit, SessionHead
from compact.stores.memory import InMemoryCompactionStore
from compact.testing import check_compaction_store, tool_run


class AuditedStore(InMemoryCompactionStore):
    """Writes a line to a file for every commit."""

    def __init__(self, path: Path, **options: object) -> None:
        super().__init__(**options)
        self._path = path

    def commit(self, commit: Commit) -> SessionHead:
        head = super().commit(commit)
        line = {
            "session": commit.session_id,
            "messages": [stored.message.id for stored in commit.messages],
            "plan": commit.plan.version if commit.plan else None,
            "tokens": commit.call.tokens_estimated if commit.call else None,
        }
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        return head


audit = Path("audit.jsonl")
check_compaction_store(lambda clock: AuditedStore(Path("suite.jsonl"), clock=clock))
print("the store keeps the rules")

history = tool_run(60, words=200)
with CompactManager(CompactConfig(model="gpt-4o", max_context_tokens=8_000), store=AuditedStore(audit)) as manager:
    for length in range(1, len(history) + 1, 2):
        manager.preflight("audited", history[:length])

lines = [json.loads(line) for line in audit.read_text(encoding="utf-8").splitlines()]
print(f"{sum(len(line['messages']) for line in lines)} messages in {len(lines)} commits")
print(f"plans in force: {[line['plan'] for line in lines if line['plan']]}")
