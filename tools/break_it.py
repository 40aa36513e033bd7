"""Breaks the code on purpose, one small change at a time, and checks that the invariants' tests notice.

    python tools/break_it.py [WORD]    only the breaks whose description holds the word

Works on a copy of the tree; prints one line per break and fails if any of them goes unnoticed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = [
    "tests/test_manager.py",
    "tests/test_s1_scenarios.py",
    "tests/core",
    "tests/strategies",
    "tests/test_invariants.py",
]


@dataclass(frozen=True, slots=True)
class Break:
    """One small change, and what it breaks."""

    what: str
    file: str
    old: str
    new: str


BREAKS = (
    Break("the log keeps the caller's own object", "adapters/chat.py", "return copy_plain(dict(item))", "return item"),
    Break("protected messages are not pinned", "core/plan/layers.py", "or bool(message.meta.get(self.protected_flag))", ""),
    Break("results are not repaired", "adapters/chat.py", "return repair_chat(slots)", "return tuple(slots), ()"),
    Break("orphans are dropped", "core/log/legality.py", "out.append(_orphan_as_text(head, repairs))", "pass"),
    Break("no cuts at the floor", "core/plan/coordinator.py", "context = _shorten(context)", ""),
    Break("the ceiling is not checked", "core/plan/coordinator.py", "if after > goal.ceiling_tokens:", "if False:"),
    Break("a repair costs nothing", "core/engine/engine.py", "- budget.fixed_tokens - session.repair_tokens", "- budget.fixed_tokens"),
    Break("compact again and again", "core/engine/engine.py", "if session.exhausted_at == session.state and", "if False and"),
    Break("shrinking is not required", "core/engine/engine.py", "if result.tokens_freed <= 0:", "if False:"),
    Break("dropped messages are not accounted for", "core/plan/renderer.py", "hidden.append(message.id)", "pass"),
    Break("the old summary stays beside the new one", "core/plan/plan.py", "if id(r) in deciding", ""),
    Break("our own text is taken for new", "core/log/thread.py", "sorted((self._raw, output)", "sorted((self._raw,)"),
    Break("an edited past is not noticed", "core/log/thread.py", "list(incoming[:known]) == shown.originals", "True"),
    Break("a failing summariser fails the call", "core/engine/summarization.py", 'if self.on_failure == "raise":', "if True:"),
    Break("the newest question may go", "core/plan/layers.py", "recent.add(newest_ask)", "pass"),
    Break("groups are split", "core/log/groups.py", "members[callers.pop()].append(index)", "members.append([index]); is_tool.append(True)"),
    Break("the summary invents", "core/facts/ledger.py", 'task = base.task or (asked[0] if asked else "")', 'task = "Plan 4711"'),
    Break("the trigger is a share of the budget", "core/plan/budget.py", "round(self.trigger_pct * self.max_context_tokens)", "round(self.trigger_pct * self.ceiling_tokens)"),
)  # fmt: skip


def main() -> int:
    """Try every break; 0 if all were noticed."""
    word = sys.argv[1] if len(sys.argv) > 1 else ""
    unnoticed = [case.what for case in BREAKS if word in case.what and not is_noticed(case)]
    print(f"{len(unnoticed)} unnoticed" + "".join(f"\n  {what}" for what in unnoticed))
    return 1 if unnoticed else 0


def is_noticed(case: Break) -> bool:
    """Make the change in a copy and run the tests until the first failure."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "tree"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".git", ".venv", ".hypothesis", "__pycache__"))
        file = copy / "src/compact" / case.file
        text = file.read_text()
        if text.count(case.old) != 1:
            raise SystemExit(f"{case.what}: {case.file} holds {text.count(case.old)} of {case.old!r}")
        file.write_text(text.replace(case.old, case.new))
        command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", *TESTS]
        run = subprocess.run(
            command, cwd=copy, env={**os.environ, "PYTHONPATH": str(copy / "src")}, capture_output=True, text=True
        )
        failure = next((line for line in run.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))), "")
        print(f"{'noticed' if run.returncode == 1 else 'UNNOTICED':<10} {case.what}: {failure[:100]}", flush=True)
        return run.returncode == 1


if __name__ == "__main__":
    sys.exit(main())
