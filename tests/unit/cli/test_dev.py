"""`tasker dev`: how it watches over its worker."""

from __future__ import annotations

import sys
import time

import pytest

from tasker.cli.worker import dev
from tasker.cli.worker.children import RESTART_SECONDS

KILLED_AT_ONCE = "import os; os.kill(os.getpid(), 9)"
REFUSED_AT_ONCE = "raise SystemExit(2)"


def pauses(code: str, count: int, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The first pauses of watching over a worker that runs this code; each is as long as the worker lives."""
    child = dev._Child([sys.executable, "-c", code])
    taken: list[float] = []

    def sleep(seconds: float) -> None:
        taken.append(seconds)
        child._process.wait()
        if len(taken) == count:
            raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", sleep)
    with pytest.raises(KeyboardInterrupt):
        dev._watch([], child)
    child.stop()
    return taken


def test_a_worker_that_is_killed_at_once_is_started_again_after_a_pause(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert pauses(KILLED_AT_ONCE, 5, monkeypatch) == [
        *[dev.LOOK_SECONDS, RESTART_SECONDS],
        *[dev.LOOK_SECONDS, RESTART_SECONDS],
        dev.LOOK_SECONDS,
    ]
    assert capfd.readouterr().err.count("the worker was killed; starting another") == 2


def test_a_worker_that_ends_with_an_error_waits_for_a_change_of_a_file(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert pauses(REFUSED_AT_ONCE, 3, monkeypatch) == [dev.LOOK_SECONDS] * 3
    assert "starting" not in capfd.readouterr().err
