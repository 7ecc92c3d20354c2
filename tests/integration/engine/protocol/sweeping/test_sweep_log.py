"""A sweep that repairs something says so: which worker lost steps, and what was repaired."""

from __future__ import annotations

import logging

import pytest

from tests.integration.engine.protocol.conftest import Orchestra
from tests.support.random_plans import RetryPolicy, Spec


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
    assert kinds == "repairs_made lost_worker=3"


async def test_a_sweep_that_takes_an_overdue_step_says_so(
    orchestra: Orchestra, caplog: pytest.LogCaptureFixture
) -> None:
    lab = orchestra.lab
    lab.one.start_worker(lease_ms=10_000_000)
    lab.running(lab.chain(1))
    lab.one.execute("update tasker.workflow_steps set deadline_at = pg_catalog.now() - interval '1 ms'")

    await orchestra.sweep()

    assert "steps=1 reason='overdue steps'" in caplog.text


async def test_a_task_that_a_sweep_ends_is_told_and_whose_it_is(
    orchestra: Orchestra, caplog: pytest.LogCaptureFixture
) -> None:
    """No worker has brought a result of it: its step was lost, and may not be tried again."""
    lab = orchestra.lab
    lab.one.start_worker(lease_ms=10_000_000)
    task, _ = lab.running(lab.plan(Spec("once", retry=RetryPolicy(max_attempts=1))))
    lab.one.execute("update tasker.workflow_steps set deadline_at = pg_catalog.now() - interval '1 ms'")

    with caplog.at_level("INFO", "tasker.orchestration"):
        assert await orchestra.sweep() == {"lost_worker": 1}

    whose = f"task_uuid={task} correlation_id={task} namespace={lab.namespace}"
    assert f"Task finalized: {whose} state={lab.task(task).state}" in caplog.messages


async def test_what_a_sweep_has_ended_is_told_although_it_comes_to_nothing_then(orchestra: Orchestra) -> None:
    """A process that stops, or loses its database, in the middle of a sweep: its spans and plugins know of the end."""
    lab = orchestra.lab
    lab.one.start_worker(lease_ms=10_000_000)
    task, _ = lab.running(lab.plan(Spec("once", retry=RetryPolicy(max_attempts=1))))
    lab.one.execute("update tasker.workflow_steps set deadline_at = pg_catalog.now() - interval '1 ms'")

    async def stopped() -> None:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        await orchestra.sweeper.sweep(orchestra.caller(), stopped)

    assert [each.finished for each in orchestra.advanced if each.finished] == [{task: "error"}]


async def test_a_worker_that_is_silent_for_two_thirds_of_its_lease_is_named_once(
    orchestra: Orchestra, caplog: pytest.LogCaptureFixture
) -> None:
    """Before its steps are taken away, and again when it was heard of meanwhile; not one that has stopped."""
    lab = orchestra.lab
    lab.one.start_worker(lease_ms=30_000)
    lab.two.start_worker(lease_ms=30_000)
    lab.two.core("worker", {"action": "stop", "worker": lab.two.worker, "lease_ms": 0})

    async def heard_of(seconds_ago: int) -> list[str]:
        """What a sweep says when the worker's last beat was so long ago."""
        lab.observer.execute(
            "update tasker.workers set beat_at = clock_timestamp() - make_interval(secs => %s), "
            "lease_until = clock_timestamp() + make_interval(secs => 3600 - %s)",
            *(seconds_ago, seconds_ago),
        )
        caplog.clear()
        await orchestra.sweep()
        return caplog.messages

    assert await heard_of(2300) == []
    (line,) = await heard_of(2500)
    assert line.startswith(f"worker_silent worker={lab.one.worker} host=here pid=1 since=20")
    assert line.endswith(" s")
    assert await heard_of(2600) == []
    assert await heard_of(10) == []
    assert len(await heard_of(2500)) == 1
    assert await heard_of(3700) == [], "it is lost, which is said when steps are taken from it"
