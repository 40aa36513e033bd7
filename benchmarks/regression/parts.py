"""What is measured, each as a table in Markdown: a row for each thing that can change by itself."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fidelity.cache import cached_facts
from fidelity.chained import chains_of
from fidelity.floors import SAMPLE_FLOORS
from fidelity.means import mean_scores
from fidelity.running import PRODUCT, Task, load
from fidelity.sample.rows import KINDS, sample_folder, sample_rows
from peers import agent_framework_peers, langchain_peers, strands_peers
from peers.measuring import MEASURES, PeerSession, limits_of, measure_session
from peers.registry import ours
from tasks import command as tasks_command
from tasks import results as tasks_results
from tasks.policies import REFERENCE, WITH_RECALL, WITHOUT_RECALL

from compact import CompactConfig, CompactManager
from compact.cli.audit.findings import CompactionAudit, audit_log
from compact.core.plan.economics import USD, USUAL_RATIOS
from compact.measuring.histories import MessageSizes, SessionHistory
from compact.measuring.needs import Commons
from compact.measuring.policies import PLAIN_POLICIES
from compact.measuring.recordings import recording_of
from compact.measuring.scores import COLUMNS, mean
from compact.measuring.simulation import find_checkpoints, simulate
from compact.testing import WordTokenizer, assistant, tool_exchange, user
from compact.tokens import get_tokenizer
from compact.transcripts import AgentLog, OwnCompaction

RESULTS = Path(__file__).parent / "results.md"
HEAD = """# The figures of the short benchmarks

`UPDATE_GOLDEN=1 python -m pytest tests/benchmarks/test_regression.py` or `python benchmarks/regression --write` writes
this file; a test compares it with what is measured. The conversations are made from a seed: the figures compare
versions of Compact and do not predict those of real sessions. Shares are in percent.
"""
Row = Sequence[Any]
_NOWHERE = {"state": {"url": "memory:"}, "storage": {"adapter": "none"}, "telemetry": {"exporter": "none"}}


def document() -> str:
    """Return the whole file as it is with the code as it is."""
    return HEAD + "".join(f"\n## {title}\n\n{part()}" for title, part in PARTS.items())


def _table(columns: Sequence[str], rows: Sequence[Row]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join(f"| {' | '.join(_cell(value) for value in row)} |\n" for row in lines)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.1f}"
    return f"{value:,}" if isinstance(value, int) else "–" if value is None else str(value)


# -- what a compaction keeps -----------------------------------------------------------------------------------------


def fidelity() -> str:
    """What survives a compaction of each kind of conversation, at two sizes."""
    folder = sample_folder()
    cached_facts(folder, lambda share: None)
    places = range(len(load(folder)[1]))
    rows: list[Row] = []
    for budget in SAMPLE_FLOORS:
        outcomes = [Task(folder, PRODUCT, place, budget, None)() for place in places]
        failed = sum(len(outcome.failures) for outcome in outcomes)
        scores = mean_scores([(outcome.source, outcome.scores) for outcome in outcomes])
        rows += [(f"{budget:g} %", kind, *(row[c] for c in COLUMNS), failed) for kind, row in scores.items()]
    return _table(("size", "conversations", *COLUMNS, "gates failed"), rows)


def rounds() -> str:
    """What eight compactions in one session leave."""
    columns = ("round", "tokens before", "after", "of summaries", "recall", "constraints lost", "gates failed")
    return _table(columns, round_rows())


def round_rows() -> list[Row]:
    """What each of eight compactions in one session leaves, over all chains."""
    chains = [chain() for chain in chains_of(sample_folder())[: len(KINDS)]]
    return [
        (
            number,
            sum(one.tokens_before for one in found),
            sum(one.tokens_after for one in found),
            sum(one.summary_tokens for one in found),
            mean([one.scores.recall for one in found if one.scores]),
            sum(one.constraints_lost for one in found),
            sum(len(one.failures) for one in found),
        )
        for number, found in enumerate(zip(*chains, strict=True), 1)
    ]


# -- what a session costs --------------------------------------------------------------------------------------------


def _histories() -> list[SessionHistory]:
    """The first conversation of each kind."""
    sizes = MessageSizes(get_tokenizer("gpt-4o"))
    found = [sample_rows(kind)[0] for kind in KINDS]
    return [SessionHistory(row["id"], row["source"], tuple(row["messages"]), sizes) for row in found]


def simulation() -> str:
    """What `compact simulate` says about our defaults and about simple rules, in one window for all."""
    histories = _histories()
    limits = min((limits_of(history) for history in histories), key=lambda one: one.window_tokens)
    policies = [ours(), *PLAIN_POLICIES.values()]
    done = simulate(histories, policies, limits, price_of=lambda tokens: USUAL_RATIOS, currency=USD)
    rows = [
        (
            one.policy,
            one.calls,
            one.input_tokens,
            one.cached_tokens,
            round(one.cost),
            one.compactions,
            one.largest_prompt_tokens,
            one.overflows + one.failures,
            *(_pct(getattr(one, name)) for name in MEASURES),
            f"{one.constraints_kept} of {one.constraints}",
        )
        for one in done.policies
    ]
    columns = ("policy", "calls", "tokens sent", "of them cached", "cost", "compactions", "largest prompt", "too large")
    return f"Window {limits.window_tokens:,} tokens.\n\n" + _table((*columns, *MEASURES, "constraints"), rows)


def peers() -> str:
    """Ours and what frameworks ship, by their own code; cost is relative to sending everything."""
    history = _histories()[0]
    recording = recording_of(history.id, history.source, history.messages)
    points = find_checkpoints(history, recording, limits_of(history), Commons([recording]))
    frameworks = (langchain_peers, agent_framework_peers, strands_peers)
    policies = [ours(), *(policy for one in frameworks for policy in one.POLICIES)]
    return _table(
        ("peer", "cost", "compactions", "illegal", "too large", *MEASURES, "constraints"),
        [_peer_row(policy.name, measure_session(history, policy, points)) for policy in policies],
    )


def _peer_row(name: str, found: PeerSession) -> Row:
    return (
        name,
        f"{found.cost:.3f}",
        found.compactions,
        found.illegal,
        found.overflows + found.failures,
        *(_pct(found.shares[measure]) for measure in MEASURES),
        f"{found.constraints_kept} of {found.constraints}",
    )


def _pct(share: float | None) -> float | None:
    return None if share is None else 100 * share


# -- what an agent reaches -------------------------------------------------------------------------------------------

# Short ones, in a window that is as much smaller than that of `make bench-tasks`.
TASKS, TASK_WINDOW, FILLERS = ("coding-0", "travel-0"), 4500, 34


def tasks() -> str:
    """Whether scripted agents reach the end of their tasks."""
    chosen = (REFERENCE, WITH_RECALL, WITHOUT_RECALL, "newest messages that fit")
    found = tasks_command.measure(TASKS, chosen, window_tokens=TASK_WINDOW, fillers=FILLERS)
    data: Mapping[str, Any] = tasks_results.as_data(found, TASK_WINDOW)["policies"]
    rows = [
        (
            name,
            row["success"],
            sum(right for right, _ in tasks_results.by_kind(found[name]).values()),
            row["recalls"],
            row["compactions"]["mean"],
            row["prompt_tokens"],
            row["largest_prompt"],
        )
        for name, row in data.items()
    ]
    columns = ("policy", "success", "checks right", "recalls", "compactions", "tokens sent", "largest prompt")
    return _table(columns, rows)


def audit() -> str:
    """What a summary of an agent and ours in the same room keep of what was known before it."""
    rows: list[Row] = []
    for history in _histories():
        log = _compacted_log(history)
        (one,) = audit_log(log, CompactConfig(**_NOWHERE)).compactions
        rows.append((history.source, *_audit_row(one)))
    columns = ("conversation", "tokens before", "after", "by Compact", "facts", "kept", "kept by Compact")
    return _table((*columns, "used later", "of them kept", "kept by Compact", "calls repeated"), rows)


def _compacted_log(history: SessionHistory) -> AgentLog:
    """The log of an agent that kept a quarter of its first half, the newest messages, and wrote two sentences."""
    half = len(history.messages) // 2
    kept = tuple(range(half - half // 4, half))
    own = OwnCompaction(half, "Work on the task has begun. The newest messages are below.", kept, "", "auto", None)
    return AgentLog(agent="made", messages=list(history.messages), compactions=(own,), source=history.id)


def _audit_row(one: CompactionAudit) -> Row:
    later = [fact for fact in one.facts if fact.used_later]
    return (
        one.tokens_before,
        one.tokens_after,
        one.tokens_by_compact,
        len(one.facts),
        sum(fact.kept for fact in one.facts),
        sum(fact.kept_by_compact for fact in one.facts),
        len(later),
        sum(fact.kept for fact in later),
        sum(fact.kept_by_compact for fact in later),
        len(one.repeats),
    )


# -- a session that lasts --------------------------------------------------------------------------------------------

TURNS, ENDURANCE_WINDOW = 120, 1_000
_WORDS = ("berth", "crane", "harbour", "pilot", "quay", "tide", "crate", "ledger")


def endurance() -> str:
    """How a long session goes on, in quarters, whether the caller sends all of its history or the last prompt."""
    rows: list[Row] = []
    for sends in ("history", "prompt"):
        config = CompactConfig(
            max_context_tokens=ENDURANCE_WINDOW,
            policy={"hard_cap_buffer": 0},
            summarizer={"prefetch": "never"},
            **_NOWHERE,
        )
        with CompactManager(config, tokenizer=WordTokenizer()) as manager:
            rows += [(sends, *row) for row in _quarters(manager, sends)]
    return _table(("caller sends", "turns", "compactions", "tokens sent", "largest prompt", "constraint kept"), rows)


def _quarters(manager: CompactManager, sends: str) -> list[Row]:
    rule, chance, count = "Never move the crate 4471.", random.Random(1), WordTokenizer().count_text
    history: list[dict[str, Any]] = [user(rule)]
    prompt, sizes, rows = list(history), list[int](), list[Row]()
    for number in range(1, TURNS + 1):
        words = " ".join(chance.choices(_WORDS, k=20))
        read = tool_exchange(f"call-{number}", f"{number} free\n{words}", path=f"src/quay_{number % 50}.py")
        new = [user(f"Is berth {number} free? {words}"), *read, assistant(f"Berth {number} is.")]
        history += new
        prompt = manager.preflight("s", history if sends == "history" else [*prompt, *new])
        text = "\n".join(str(message.get("content")) for message in prompt)
        sizes.append(count(text))
        if number % (TURNS // 4) == 0:
            version = manager.status("s").plan_version
            rows.append((number, version, sum(sizes), max(sizes), "yes" if rule in text else "NO"))
            sizes.clear()
    return rows


PARTS: Mapping[str, Callable[[], str]] = {
    "What a compaction keeps": fidelity,
    "Eight compactions in one session": rounds,
    "Simulated sessions": simulation,
    "Peers": peers,
    "Scripted tasks": tasks,
    "Audit": audit,
    "A session that lasts": endurance,
}
