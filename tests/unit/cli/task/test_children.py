"""What the end of a worker process means to the command that started it."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tasker.cli.commands.worker_children import code_of


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGKILL, 9), (signal.SIGSEGV, 11)])
def test_a_child_that_was_told_to_end_while_it_started_has_ended_well(number: int, code: int) -> None:
    with subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"]) as child:
        child.send_signal(number)
        child.wait()
        assert code_of(child) == code


def test_the_code_of_a_child_that_ends_by_itself_is_its_own() -> None:
    with subprocess.Popen([sys.executable, "-S", "-c", "raise SystemExit(3)"]) as child:
        child.wait()
        assert code_of(child) == 3
