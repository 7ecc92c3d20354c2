"""Ctrl-Z is no reason for a watched process to end, however long it lasts."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.support.waiting import until

PROGRAM = """
import sys, threading
from tasker.process import watchdogs
watchdogs.SHORTEST_SECONDS = 2.0
with watchdogs.watch_interpreter(2.0):
    print("watched", flush=True)
    for line in sys.stdin:
        print(line.strip(), flush=True)
"""


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc to see a stopped process")
def test_a_process_that_was_suspended_goes_on() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin
        assert process.stdout
        assert process.stdout.readline() == "watched\n"
        process.send_signal(signal.SIGTSTP)
        until(lambda: state(process.pid) == "T", "it is stopped")
        threading.Event().wait(3.0)  # longer than the interpreter may stand still: the time of the process itself
        process.send_signal(signal.SIGCONT)
        print("still here", file=process.stdin, flush=True)
        assert process.stdout.readline() == "still here\n"
        process.stdin.close()
        assert process.wait(30) == 0
