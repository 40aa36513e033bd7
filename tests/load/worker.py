"""A process that talks in sessions of its own until its time is over: `python worker.py '{"json": "arguments"}'`."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import asdict
from itertools import count
from typing import Any

from compact.core.engine.events import CompactionCompletedEvent, CompactionErrorEvent
from load.sessions import Load, canary, turn
from stores.worker import manager_on

# A session of so many turns is compacted several times, and then another one begins.
TURNS = 24
# How many sessions a process has at a time.
OPEN = 6


def talk(url: str, number: int, processes: int, seconds: float) -> dict[str, Any]:
    """Go on in each of the open sessions in turns; begin others where they are at their end."""
    load, sessions = Load(), 0
    manager, sink = manager_on(url, window=1_500)
    with manager, load.measured():
        end = time.monotonic() + seconds
        for first in count(step=OPEN):
            mine = [number + processes * (first + place) for place in range(OPEN)]
            sessions += OPEN
            histories = {session: list[Any]() for session in mine}
            for at in range(TURNS):
                for session, history in histories.items():
                    history += turn(session, at)
                    with load.call():
                        prompt = manager.preflight(f"s-{session}", history)
                    load.check(prompt, session)
                    if at % 8 == 7:
                        answer = manager.recall(f"s-{session}", f"free berths at quay {at // 2}")
                        load.check(str(answer), session)
                        if canary(session) not in str(answer):
                            load.errors.append(f"session {session}: recall found nothing")
                if time.monotonic() > end:
                    break
            if time.monotonic() > end:
                break
        load.errors += [event.message for event in sink.of(CompactionErrorEvent)]
    return {**asdict(load), "sessions": sessions, "compactions": len(sink.of(CompactionCompletedEvent))}


def start(**arguments: Any) -> subprocess.Popen[str]:
    """Start a process that talks."""
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, __file__, json.dumps(arguments)], stdin=pipe, stdout=pipe, stderr=pipe, text=True
    )


if __name__ == "__main__":
    sys.stdout.write(json.dumps(talk(**json.loads(sys.argv[1]))))
