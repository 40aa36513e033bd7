"""What the proxy adds to a call, measured on loopback; benchmarks/proxy.py prints it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path

import httpx2
import pytest

from compact import CompactConfig
from compact.core.audit.records import Commit, SessionHead
from compact.stores.sql import SqlCompactionStore
from proxying.conftest import eventually, running
from proxying.provider import PATIENCE_SECONDS, Provider, as_json

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "proxy.py"


def test_a_call_that_is_not_compacted_hardly_takes_longer() -> None:
    """A generous limit on the quickest calls, because machines that run tests are slow and busy."""
    done = subprocess.run(
        [sys.executable, str(BENCHMARK), "--json", "--calls", "40"], capture_output=True, text=True, check=True
    )
    rows = json.loads(done.stdout)["rows"]
    assert {row["wire"] for row in rows} == {"chat", "anthropic", "responses"}
    for row in rows:
        sys.stdout.write(f"{row['wire']}: {row['added_ms']:.1f} ms added, median; {row['best_ms']:.1f} ms at best\n")
        assert row["best_ms"] < 60, row
        assert row["added_ms"] < 250, row


def test_the_store_writes_while_the_provider_works_and_the_answer_waits_for_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = CompactConfig(state={"url": f"sqlite:///{tmp_path / 'compact.db'}"})
    may_write, committed, answers = threading.Event(), SqlCompactionStore.commit, list[int]()

    def commit(self: SqlCompactionStore, commit: Commit) -> SessionHead:
        assert may_write.wait(PATIENCE_SECONDS)
        return committed(self, commit)

    monkeypatch.setattr(SqlCompactionStore, "commit", commit)
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}]}
    answer = as_json({"usage": {"prompt_tokens": 9}})
    with Provider(lambda _: answer) as provider, running(provider.url, config) as proxy:

        def ask() -> None:
            answers.append(httpx2.post(f"{proxy.v1}/chat/completions", json=body, timeout=60).status_code)

        agent = threading.Thread(target=ask)
        agent.start()
        eventually(lambda: provider.received, "the provider is asked before the store has written")
        agent.join(0.5)
        assert answers == [], "an answer that is seen is about a prompt that is stored"
        may_write.set()
        agent.join(PATIENCE_SECONDS)
        assert answers == [200]
