"""Which process this is, and whether another one has ended: a claim names its process, and nobody waits for the dead.

A name holds on one machine until it restarts. Of a process on another machine, or in another container, nothing is
known, and it is taken to be alive.
"""

from __future__ import annotations

import hashlib
import os
import socket
import sys
from functools import cache
from pathlib import Path

_PROC = Path("/proc")
# What Linux says of a process that has ended and whose parent has not asked for the outcome yet.
_ENDED = ("Z", "X")


def process_name() -> str:
    """Return the name of this process: no other one on any machine has it, and none will after it."""
    return _name_of(os.getpid())


def has_ended(name: str) -> bool:
    """Return True if the process of this name is known to have ended."""
    machine, _, rest = name.partition("/")
    pid, _, started = rest.partition("/")
    if machine != _machine() or not pid.isdigit() or sys.platform == "win32":  # there os.kill ends what it asks for
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False  # it is there, and somebody else's
    state, now_started = _state_of(int(pid))
    return state in _ENDED or bool(started and now_started and started != now_started)


@cache
def _name_of(pid: int) -> str:
    # The number of a process is given out again; with the moment of its start it is not.
    return f"{_machine()}/{pid}/{_state_of(pid)[1]}"


@cache
def _machine() -> str:
    """Return what tells apart everything in which numbers of processes mean the same."""
    boot, namespace = _PROC / "sys/kernel/random/boot_id", _PROC / "self/ns/pid"
    parts = [socket.gethostname()]
    try:
        parts += [boot.read_text().strip(), os.readlink(namespace)]
    except OSError:
        parts.append("unknown start")
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _state_of(pid: int) -> tuple[str, str]:
    """Return the state of a process and when it started, in ticks since the machine did; empty where nobody knows."""
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return "", ""
    # The name of the program stands in parentheses, and may hold anything.
    fields = text[text.rfind(")") + 1 :].split()
    return fields[0], fields[19]
