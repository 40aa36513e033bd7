"""How long a peer takes on long histories, how much memory, and how long its import; each in a process of its own.

python benchmarks/peers/speed.py NAME TURNS     what one such process does
"""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

TURNS = (100, 1_000, 10_000)
# LiteLLM would ask for prices, Headroom for models, and write what it leaves out to disk. Read when they are imported.
OFFLINE = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "HEADROOM_OFFLINE": "1", "HEADROOM_STATELESS": "1"}
LIMIT_SECONDS = 30.0
# How exactly some systems count CPU time.
TICK_SECONDS = 0.004
_WORDS = 40
_IMPORTS = 2
_STATUS = Path("/proc/self/status")


def long_history(turns: int) -> list[dict[str, Any]]:
    """Turns of a person's question, a tool call, its result and an answer."""
    from compact.testing import assistant, system, tool_exchange, user

    messages = [system("You are careful.")]
    for number in range(turns):
        result = f"line {number} of src/file_{number}.py: " + "value " * _WORDS
        messages += [
            user(f"Step {number}: look at src/file_{number}.py, please."),
            *tool_exchange(f"call-{number}", result, tool="read_file", path=f"src/file_{number}.py"),
            assistant(f"It has {number} lines; going on."),
        ]
    return messages


def measure_speed(name: str, turns: int) -> dict[str, float]:
    """The CPU seconds of the first call, which compacts, and of the next; and the memory that they took.

    A summary that stands in for a model's is no part of the seconds.
    """
    from compact.measuring.histories import MessageSizes, SessionHistory
    from compact.measuring.policies import PolicyLimits
    from compact.tokens import get_tokenizer
    from peers.conversion import StandIn
    from peers.registry import installed_peers

    peer = next(peer for peer in installed_peers(name)[0] if peer.policy.name == name)
    messages = long_history(turns)
    history = SessionHistory("long", "long", tuple(messages), MessageSizes(get_tokenizer("gpt-4o")))
    trigger = int(0.5 * history.largest_tokens)
    # What is counted once for all policies is not a peer's time.
    _ = history.calls, history.tokens_before, history.groups
    before = peak_mb()
    # What imports left behind would be looked through meanwhile, for longer than some peers take.
    gc.collect()
    # CPU time: other work on the machine does not count. What goes on for longer is ended by the system.
    started, written = time.process_time(), StandIn.seconds
    resource.setrlimit(resource.RLIMIT_CPU, (int(started + LIMIT_SECONDS) + 1, resource.RLIM_INFINITY))
    prepare = peer.policy.start(history, PolicyLimits(int(trigger / 0.85), trigger))
    prepare(history.calls[-2])
    first = time.process_time() - StandIn.seconds + written
    prepare(history.calls[-1])
    last = time.process_time() - StandIn.seconds + written
    memory = round(peak_mb() - before, 1)
    return {"first_s": round(first - started, 4), "next_s": round(last - first, 4), "memory_mb": memory}


def peak_mb() -> float:
    """The most memory that this program has had; the system's own figure may be that of the program that started it."""
    if not _STATUS.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


def speeds_of(name: str) -> dict[str, dict[str, float] | None]:
    """The same for each length, measured in a process of its own; None for what takes too long."""
    words = [sys.executable, str(Path(__file__)), name, *map(str, TURNS)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment())
    if done.returncode not in (0, -signal.SIGXCPU):
        raise RuntimeError(f"{name}: {done.stderr.strip()}")
    measured = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {str(turns): measured[n] if n < len(measured) else None for n, turns in enumerate(TURNS)}


def import_seconds(statement: str) -> float:
    """The CPU seconds of an import in a fresh process, beyond starting Python: the fastest of a few."""
    return round(max(0.0, _fastest(statement) - _fastest("pass")), 3)


def _fastest(code: str) -> float:
    taken: list[float] = []
    for _ in range(_IMPORTS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, env=environment())
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(taken)


def environment() -> dict[str, str]:
    """The environment of a process that measures: nothing is asked of the network."""
    return {**os.environ, **OFFLINE}


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    for length in sys.argv[2:]:
        print(json.dumps(measure_speed(sys.argv[1], int(length))), flush=True)
