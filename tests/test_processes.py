"""Whether a process has ended is known of this machine, and of no other."""

from __future__ import annotations

import os
import subprocess
import sys

from compact.waiting.processes import has_ended, process_name


def test_this_process_has_not_ended() -> None:
    assert not has_ended(process_name())


def test_a_process_that_was_killed_has_ended_before_its_parent_asks_for_it() -> None:
    say = "from compact.waiting.processes import process_name; print(process_name(), flush=True); input()"
    process = subprocess.Popen([sys.executable, "-c", say], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    name = process.stdout.readline().strip()
    assert not has_ended(name)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert has_ended(name), "it is a zombie"
    process.communicate()
    assert has_ended(name)


def test_a_number_that_was_given_out_again_is_another_process() -> None:
    machine, pid, started = process_name().split("/")
    assert has_ended(f"{machine}/{pid}/{int(started) + 1}")


def test_of_other_machines_nothing_is_known() -> None:
    _, _, started = process_name().split("/")
    assert not has_ended(f"0123456789abcdef/999999999/{started}")
    assert not has_ended("")
