"""Change the ground floor, `src/compact/core`, one expression at a time, and list the changes that no test notices.

    python tools/mutate.py                       every change, with the tests of the long run: hours
    python tools/mutate.py --sample 500 --seed 1 a random 500 of them
    python tools/mutate.py --short               what CI runs: a few changes of files whose own tests notice all
    python tools/mutate.py core/plan/budget.py --tests tests/core/plan
                                                 only files whose path begins with this, and with these tests

First every test is run once, to learn which lines of the core it runs. Then for each change a process is forked that
has all tests loaded, gives the function its changed code, and runs the tests of that line, the quickest first, until
one fails. No file is written. Results are kept in `.mutation/`: a run that was stopped goes on where it was, until the
code or the tests change. Survivors are in `.mutation/survivors.toml`.

Exits with 1 if a change survives that `tools/survivors.toml` does not explain, or if an explanation there names a line
that is gone. A changed function is not seen by a test that starts a Python of its own, nor by what was computed when
the module was imported: changes that only run then are left out.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
from coverage import CoverageData
from mutations import Mutant, as_explanation, explanations, mutants_of, mutated

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src/compact"
EXPLAINED = ROOT / "tools/survivors.toml"
STATE = ROOT / ".mutation"
PROCESSES = int(os.environ.get("TEST_PROCESSES", "2"))
# Files whose own tests notice every change that is not explained; CI tries some of them, since it has two minutes.
# Chosen: what in a list is new, what a provider accepts, what stays together, what is kept verbatim, what is attached,
# what stands for what left and what a summary says, when a history is compacted and what that saves, what is reported
# and what is found.
_HELD_FILES = (
    "core/audit/artifacts.py",
    "core/audit/call_details.py",
    "core/audit/cost.py",
    "core/audit/diff.py",
    "core/audit/failures.py",
    "core/audit/freed.py",
    "core/audit/phrases.py",
    "core/audit/records.py",
    "core/audit/regret_finder.py",
    "core/audit/report.py",
    "core/audit/sent_calls.py",
    "core/audit/store.py",
    "core/audit/trace_events.py",
    "core/audit/why.py",
    "core/engine/trigger.py",
    "core/log/alignment.py",
    "core/log/formed_entries.py",
    "core/log/forms.py",
    "core/log/known_list.py",
    "core/log/left_entries.py",
    "core/log/list_change.py",
    "core/log/log.py",
    "core/log/recognition.py",
    "core/messages/attachment_use.py",
    "core/messages/attachments.py",
    "core/messages/groups.py",
    "core/messages/legality.py",
    "core/plan/budget.py",
    "core/plan/durability.py",
    "core/plan/economics.py",
    "core/plan/edited.py",
    "core/plan/layers.py",
    "core/plan/line_index.py",
    "core/plan/parts.py",
    "core/plan/plan.py",
    "core/plan/regret.py",
    "core/plan/renderer.py",
    "core/plan/stubs.py",
    "core/plan/turn.py",
    "core/search/ranking.py",
    "core/search/search_terms.py",
    "core/search/stemming.py",
    "core/session/past_plans.py",
    "core/session/prompt.py",
    "core/session/regret_watch.py",
    "core/session/session.py",
    "core/session/tails.py",
    "core/summary/fitting.py",
    "core/summary/focus.py",
    "core/summary/parsing.py",
    "core/summary/span_index.py",
    "core/summary/summarizer.py",
    "core/summary/summary.py",
    "core/summary/verification.py",
)
_HELD_TESTS = (
    "tests/core/audit",
    "tests/core/engine/test_trigger.py",
    "tests/core/log/test_alignment.py",
    "tests/core/log/test_forms.py",
    "tests/core/messages/test_attachments.py",
    "tests/core/messages/test_legality.py",
    "tests/core/log/test_log_alone.py",
    "tests/core/messages/test_structure.py",
    "tests/core/plan",
    "tests/core/planning/test_attachments.py",
    "tests/core/search",
    "tests/core/session",
    "tests/core/summary",
    "tests/test_injection.py",
)
_SHORT_SAMPLE = 40
# Chosen: the tests of the core itself, and those of behaviour that need no server and no browser.
_TESTS = (
    "tests/core",
    "tests/strategies",
    "tests/recall",
    "tests/measuring",
    "tests/dialects",
    "tests/test_changing_clients.py",
    "tests/test_focus.py",
    "tests/test_injection.py",
    "tests/test_insufficient_budget.py",
    "tests/test_invariants.py",
    "tests/test_manager.py",
    "tests/test_matching.py",
    "tests/test_money.py",
    "tests/test_s1_scenarios.py",
    "tests/test_stateless.py",
)
# Chosen: a test that takes longer is not run for a change, and the tests of one change not longer than this together.
_TEST_SECONDS, _MUTANT_SECONDS = 5.0, 30.0
# Chosen: a change that makes a loop endless is ended by its processor time, at least so much and so many times what its
# tests take; one that collects memory by its size.
_LEAST_CPU_SECONDS, _TIMES_CPU, _MEMORY_BYTES = 5, 3, 6 << 30
# Chosen: so few that most properties are quick enough to be among the tests of a change.
_EXAMPLES = 10
_SURVIVED, _NOTICED, _ENDED, _BROKEN = 0, 1, 2, 3
_WORDS = {_SURVIVED: "SURVIVED", _NOTICED: "noticed", _ENDED: "ended"}
NO_TEST = "no test"
_BEGAN, _TOOK, _SECONDS_FILE = "began", "cpu_seconds", "COMPACT_MUTATE_SECONDS"


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    """Have Hypothesis draw few examples, and stop at the first that fails: how small it could be does not matter here.

    pytest calls this, because this file is a plug-in, too.
    """
    from hypothesis import Phase, settings  # only here: pytest warns if its plug-in is loaded before it

    phases = (Phase.explicit, Phase.generate)
    settings.register_profile("mutate", settings(), phases=phases, max_examples=_EXAMPLES)
    settings.load_profile("mutate")


# Not what a clock says: on a busy machine that is many times as much, and the test would be left out.
_cpu_seconds: dict[str, float] = {}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    """Remember when a test begins."""
    item.user_properties.append((_BEGAN, time.process_time()))
    yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """Pass on what a test has taken, from the process that runs it to the one that is asked."""
    yield
    began = dict(item.user_properties)[_BEGAN]
    item.user_properties.append((_TOOK, time.process_time() - float(str(began))))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep what a test has taken."""
    took = dict(report.user_properties).get(_TOOK)
    if took is not None:
        _cpu_seconds[report.nodeid] = float(str(took))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write what all tests have taken, if that was asked for."""
    if _SECONDS_FILE in os.environ and not hasattr(session.config, "workerinput"):
        Path(os.environ[_SECONDS_FILE]).write_text(json.dumps(_cpu_seconds))


def main(arguments: Sequence[str] | None = None) -> int:
    """Try the changes that were asked for; 0 if each that survives is explained."""
    options = _parse(arguments)
    tests = tuple(options.tests or (_HELD_TESTS if options.short else _TESTS))
    os.environ["CI"] = "1"  # Hypothesis draws the same examples for every change
    state = STATE / _digest(tests)
    state.mkdir(parents=True, exist_ok=True)
    known = _learn(tests, state)
    everything = [mutant for file in core_files() for mutant in mutants_of(SOURCE, file)]
    gone = [one for one in explanations(EXPLAINED) if one.key not in {mutant.key for mutant in everything}]
    under = options.under or (_HELD_FILES if options.short else ("core",))
    trials = [
        known.trial(mutant)
        for mutant in everything
        if mutant.file.startswith(tuple(under)) and not known.is_import(mutant)
    ]
    chosen = choose(trials, options.sample, options.seed)
    outcomes = Outcomes(state / "outcomes.jsonl")
    _run(chosen, tests, outcomes, state)
    # A line may have two changes of the same name, of which one is explained, and the sample the other.
    untried = Counter(trial.mutant.key for trial in trials) - Counter(trial.mutant.key for trial in chosen)
    return report([trial.mutant for trial in chosen], outcomes, gone, untried)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="mutate", description="which changes of the core no test notices")
    parser.add_argument("under", nargs="*", help="only files whose path begins with one of these")
    parser.add_argument("--sample", type=int, metavar="N", help="only N changes, drawn by the seed")
    parser.add_argument("--seed", type=int, default=1, help="which ones (default: 1)")
    parser.add_argument(
        "--short",
        action="store_true",
        help=f"{_SHORT_SAMPLE} changes of files whose own tests are quick and notice every change",
    )
    parser.add_argument("--tests", nargs="+", metavar="PATH", help="the tests that may notice")
    options = parser.parse_args(arguments)
    if options.short:
        options.sample = options.sample or _SHORT_SAMPLE
    return options


def core_files() -> list[str]:
    """Return the files of the core, below `src/compact/`."""
    return sorted(str(path.relative_to(SOURCE)) for path in (SOURCE / "core").rglob("*.py"))


def choose(trials: Sequence[Trial], count: int | None, seed: int) -> list[Trial]:
    """Return as many as asked for: each by what it is, so that an edit in one place leaves the others as they are.

    They are in the order in which they were drawn: a run that is stopped has tried a random part.
    """
    return sorted(trials, key=lambda trial: hashlib.sha256(repr((seed, trial.mutant.key)).encode()).digest())[:count]


def _digest(tests: Sequence[str]) -> str:
    """Return what stands for the code and the tests as they are now."""
    digest = hashlib.sha256(repr(tests).encode())
    for path in sorted([*(ROOT / "src").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


# -- which tests run a line ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Knowledge:
    """Which tests run which line, and how long each takes."""

    lines: Mapping[str, Mapping[int, Sequence[str]]]
    seconds: Mapping[str, float]

    def trial(self, mutant: Mutant) -> Trial:
        """Return a change with the tests that run its line."""
        tests = tuple(self._tests_of(mutant))
        return Trial(mutant, tests, sum(self.seconds.get(test, 0) for test in tests))

    def _tests_of(self, mutant: Mutant) -> Iterator[str]:
        """Yield the tests that run the line of a change, the quickest first, as long as there is time."""
        left = _MUTANT_SECONDS
        for test in sorted(self._contexts(mutant) - {""}, key=lambda test: (self.seconds.get(test, 0), test)):
            left -= self.seconds.get(test, 0)
            if left >= 0 and self.seconds.get(test, 0) <= _TEST_SECONDS:
                yield test

    def is_import(self, mutant: Mutant) -> bool:
        """Say whether the line runs only when its module is imported."""
        return self._contexts(mutant) == {""}

    def _contexts(self, mutant: Mutant) -> set[str]:
        lines = self.lines.get(mutant.file, {})
        found = {c for number in range(mutant.first_line, mutant.last_line + 1) for c in lines.get(number, ())}
        return {context.rpartition("|")[0] if "|" in context else context for context in found}


def _learn(tests: Sequence[str], state: Path) -> Knowledge:
    """Run the tests once, unless that was done, and return which of them runs which line."""
    data, seconds = state / "coverage", state / "seconds.json"
    if not seconds.exists():
        print(f"running {', '.join(tests)} once, to learn which lines each test runs", flush=True)
        start = time.monotonic()
        unfinished = state / "seconds.unfinished"
        _run_with_coverage(tests, data, unfinished)
        unfinished.replace(seconds)
        count = len(json.loads(seconds.read_text()))
        print(f"{count:,} tests in {time.monotonic() - start:.0f} s", flush=True)
    covered = CoverageData(str(data))
    covered.read()
    files = {file: covered.contexts_by_lineno(str(SOURCE / file)) for file in core_files()}
    return Knowledge(files, json.loads(seconds.read_text()))


def _run_with_coverage(tests: Sequence[str], data: Path, seconds: Path) -> None:
    options = ["-q", "-n", str(PROCESSES), "--dist", "worksteal", "-p", "no:cacheprovider"]
    options += ["-p", "mutate", "--cov=compact.core", "--cov-context=test", "--cov-report=", "--cov-fail-under=0"]
    paths = [str(ROOT / "src"), str(ROOT / "tools")]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *tests],
        cwd=ROOT,
        env={
            **os.environ,
            "COVERAGE_FILE": str(data),
            "PYTHONPATH": os.pathsep.join(paths),
            _SECONDS_FILE: str(seconds.resolve()),
        },
        capture_output=True,
        text=True,
    )
    if done.returncode not in (0, _NOTICED):
        raise SystemExit(f"the tests could not be run: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    for line in done.stdout.splitlines():
        if line.startswith("FAILED"):
            print(f"fails without any change, or because it is measured: {line}", flush=True)


# -- one change after the other --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Trial:
    """A change, and the tests that may notice."""

    mutant: Mutant
    tests: tuple[str, ...]
    seconds: float


@dataclass
class Outcomes:
    """What became of each change, on disk, too."""

    path: Path
    by_change: dict[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        if self.path.exists():
            rows = [json.loads(line) for line in self.path.read_text().splitlines()]
            self.by_change = {row["change"]: row["outcome"] for row in rows}

    def of(self, mutant: Mutant) -> str | None:
        """Return what became of a change, if it was tried."""
        return self.by_change.get(_name(mutant))

    def add(self, mutant: Mutant, outcome: str) -> None:
        """Keep what became of a change."""
        self.by_change[_name(mutant)] = outcome
        with self.path.open("a") as file:
            file.write(json.dumps({"change": _name(mutant), "outcome": outcome}) + "\n")


def _name(mutant: Mutant) -> str:
    return f"{mutant.file}#{mutant.number}"


def _run(trials: Sequence[Trial], tests: Sequence[str], outcomes: Outcomes, state: Path) -> None:
    """Load the tests once, and try each change in a process of its own."""
    waiting = [trial for trial in trials if outcomes.of(trial.mutant) is None]
    for trial in [trial for trial in waiting if not trial.tests]:
        outcomes.add(trial.mutant, NO_TEST)
        waiting.remove(trial)
    if not waiting:
        return
    plugin = _Trials(waiting, outcomes, state / "output.txt")
    os.chdir(ROOT)
    with tempfile.TemporaryDirectory() as folder:
        options = ["-q", "--no-header", "--tb=no", "-p", "no:cacheprovider", "--no-cov", "--timeout=150"]
        code = pytest.main([*options, f"--basetemp={folder}/tests", *tests], plugins=[plugin, sys.modules[__name__]])
    if not plugin.is_done:
        raise SystemExit(f"the tests could not be loaded: pytest ended with {code}")


class _Trials:
    """A plug-in of pytest that runs the loaded tests once for each change."""

    def __init__(self, trials: Sequence[Trial], outcomes: Outcomes, output: Path) -> None:
        self.trials, self.outcomes, self.output = trials, outcomes, output
        self.is_done, self.is_child = False, False
        self.items: dict[str, pytest.Item] = {}
        self.functions: dict[str, list[FunctionType]] = {}

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Try each change, as many at once as there are processes."""
        plugins = session.config.pluginmanager
        plugins.unregister(
            plugins.get_plugin("terminalreporter")
        )  # it would print a point for each test of each change
        self.items = {item.nodeid: item for item in session.items}
        self.functions = _core_functions()
        failing = self._failing_without_change()
        start, running = time.monotonic(), dict[int, tuple[Trial, float]]()
        queue = list(reversed(self.trials))
        count = tried = 0
        while queue or running:
            while queue and len(running) < PROCESSES:
                trial = queue.pop()
                tests = [test for test in trial.tests if test in self.items and test not in failing]
                running[self._fork(tests, trial)] = (trial, time.monotonic())
            pid, status = os.wait()
            trial, began = running.pop(pid)
            outcome, tried = self._outcome(trial, status), tried + 1
            count += outcome == _WORDS[_SURVIVED]
            self.outcomes.add(trial.mutant, outcome)
            left = (time.monotonic() - start) / tried * (len(self.trials) - tried) / 60
            print(
                f"[{tried:4}/{len(self.trials)}] {outcome:<8} {time.monotonic() - began:4.1f} s  {_told(trial.mutant)}"
                f"   ({count} survived, {left:.0f} min left)",
                flush=True,
            )
        self.is_done = True
        return True

    def _failing_without_change(self) -> set[str]:
        """Run what will be needed in the order of its time, and return what cannot be run like that."""
        failing = set[str]()
        needed = list(dict.fromkeys(test for trial in self.trials for test in trial.tests if test in self.items))
        while needed:
            reading, writing = os.pipe()
            pid = self._fork(needed, None, writing)
            os.close(writing)
            with os.fdopen(reading) as pipe:
                named = pipe.read()
            os.waitpid(pid, 0)
            if not named:
                return failing
            print(f"left out, because it fails in this order without any change: {named}", flush=True)
            failing.add(named)
            needed = needed[needed.index(named) + 1 :]
        return failing

    def _fork(self, tests: Sequence[str], trial: Trial | None, writing: int | None = None) -> int:
        sys.stdout.flush()
        pid = os.fork()
        if pid:
            return pid
        self.is_child, self.writing = True, writing
        code = _BROKEN
        try:
            self._be_quiet()
            if trial:
                _limit(_LEAST_CPU_SECONDS + int(_TIMES_CPU * trial.seconds))
                _give_code(self.functions[trial.mutant.file], trial.mutant)
            items = [self.items[test] for test in tests]
            # There are none if all of them fail without any change.
            for item, following in zip(items, [*items[1:], None], strict=False):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            code = _SURVIVED
        # Whatever it is, the parent must hear of it, and this process must not go on beside it.
        except BaseException:  # noqa: BLE001
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)

    def _be_quiet(self) -> None:
        output = os.open(self.output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """End the process at the first failure."""
        if self.is_child and report.failed:
            if self.writing is not None:
                os.write(self.writing, report.nodeid.encode())
            os._exit(_NOTICED)

    def _outcome(self, trial: Trial, status: int) -> str:
        """Return the word for how a process ended."""
        if os.WIFSIGNALED(status):
            return _WORDS[_ENDED]
        if os.WEXITSTATUS(status) == _BROKEN:
            raise RuntimeError(f"{_told(trial.mutant)} could not be tried: see {self.output}")
        return _WORDS[os.WEXITSTATUS(status)]


def _limit(cpu_seconds: int) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))
    with suppress(ValueError):  # a system that does not limit memory
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))


def _core_functions() -> dict[str, list[FunctionType]]:
    """Return the functions that are in memory, by the file of the core that they are written in."""
    gc.collect()
    found: dict[str, list[FunctionType]] = {file: [] for file in core_files()}
    paths = {str(SOURCE / file): file for file in found}
    for one in gc.get_objects():
        if isinstance(one, FunctionType) and one.__code__.co_filename in paths:
            found[paths[one.__code__.co_filename]].append(one)
    return found


def _give_code(functions: Sequence[FunctionType], mutant: Mutant) -> None:
    """Give the function of a change its new code: everybody who has the function has the change."""
    path = SOURCE / mutant.file
    module = compile(mutated(path.read_text(encoding="utf-8"), mutant.number), str(path), "exec")
    codes = {(code.co_qualname, code.co_firstlineno): code for code in _codes(module)}
    changed = 0
    for function in functions:
        old = function.__code__
        new = codes.get((old.co_qualname, old.co_firstlineno))
        if old.co_qualname == mutant.function and new is not None and new != old:
            function.__code__ = new
            changed += 1
    if not changed:
        raise LookupError(f"{mutant.function} of {mutant.file} is not in memory, or not changed by {mutant.change}")


def _codes(code: CodeType) -> Iterator[CodeType]:
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield const
            yield from _codes(const)


# -- the result ------------------------------------------------------------------------------------------------------


def report(mutants: Sequence[Mutant], outcomes: Outcomes, gone: Sequence[Any], untried: Collection[Any]) -> int:
    """Print the counts and what is to be done; 0 if that is nothing."""
    explained = {one.key for one in explanations(EXPLAINED)}
    survived = [m for m in mutants if outcomes.of(m) in (_WORDS[_SURVIVED], NO_TEST)]
    new = [mutant for mutant in survived if mutant.key not in explained]
    needless = {m.key for m in mutants if m.key in explained} - {m.key for m in survived} - set(untried)
    untested = sum(outcomes.of(mutant) == NO_TEST for mutant in survived)
    print(
        f"{len(mutants):,} changes were tried: {len(mutants) - len(survived):,} noticed, {len(survived):,} survived"
        f" ({untested:,} where no test runs), of which {len(survived) - len(new):,} are explained"
    )
    for key in sorted(needless):
        print(f"  noticed now, so its explanation can go: {' | '.join(key)}")
    for one in gone:
        print(f"  explained, but no longer there: {' | '.join(one.key)}")
    for mutant in new:
        print(f"  survived: {_told(mutant)}" + ("  (no test runs it)" if outcomes.of(mutant) == NO_TEST else ""))
    (STATE / "survivors.toml").write_text("\n".join(as_explanation(mutant) for mutant in new), encoding="utf-8")
    if new or gone:
        print(
            f"write a test that notices, or say in {EXPLAINED.relative_to(ROOT)} why the change does no harm:"
            f" {STATE.name}/survivors.toml has the lines for it"
        )
    return 1 if new or gone else 0


def _told(mutant: Mutant) -> str:
    return f"{mutant.file}:{mutant.first_line} {mutant.function}: {mutant.change}"


if __name__ == "__main__":
    sys.exit(main())
