"""A sweep that repairs something says so: which worker lost steps, and what was repaired."""

from __future__ import annotations

import logging

import pytest

from tests.integration.engine.protocol.conftest import Orchestra


async def test_a_sweep_that_takes_steps_away_says_from_whom_how_many_and_why(
    orchestra: Orchestra, caplog: pytest.LogCaptureFixture
) -> None:
    lab = orchestra.lab
    lab.one.start_worker()
    lab.submit(lab.chain(1), {}, {}, {})
    assert len(lab.one.claim(3)) == 3
    await orchestra.sweep()
    assert not caplog.records, "nothing was repaired"
    lab.two.core("worker", {"action": "stop", "worker": lab.one.worker, "lease_ms": 0})

    await orchestra.sweep()

    lost, kinds = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert lost.startswith(f"worker_lost worker={lab.one.worker} ")
    assert " host=" in lost
    assert " pid=" in lost
    assert " steps=3 reason='silent for " in lost
    assert kinds == "sweep_repaired lost_worker=3"


async def test_a_sweep_that_takes_an_overdue_step_says_so(
    orchestra: Orchestra, caplog: pytest.LogCaptureFixture
) -> None:
    lab = orchestra.lab
    lab.one.start_worker(lease_ms=10_000_000)
    lab.running(lab.chain(1))
    lab.one.execute("update tasker.workflow_steps set deadline_at = pg_catalog.now() - interval '1 ms'")

    await orchestra.sweep()

    assert "steps=1 reason='overdue steps'" in caplog.text
