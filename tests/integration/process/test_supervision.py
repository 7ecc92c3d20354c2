"""The services of a process: a crashed one is started again and counted, a hanging one holds up no stop."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import pytest

from tasker.app.orchestrator_assembly import orchestrator_process
from tasker.app.preparation import prepare
from tasker.clock import BackoffPolicy
from tasker.errors import BackendUnavailable
from tasker.messaging.listening_modes import DeploymentMode
from tasker.messaging.service import MessagingService
from tasker.orchestration.sweep import SweepSettings
from tasker.process import supervisor as supervision
from tasker.process.orchestrator import Orchestrator
from tasker.process.runtime import Runtime
from tasker.process.supervisor import Supervisor
from tasker.settings.execution import Sweep
from tests.integration.app.life.left import nothing_is_open
from tests.integration.process.programs import (
    NEVER_MS,
    events_of,
    eventually,
    listening,
    runs,
    runtime_of,
    settings,
    submitting,
    working,
)

HYBRID = DeploymentMode.HYBRID


@pytest.mark.parametrize(
    ("find", "method", "name"),
    [
        (lambda runtime: runtime.execution.claimer, "_poll_once", "Claimer.run"),
        (lambda runtime: runtime.upkeep, "_turn", "Upkeep.run"),
        (lambda runtime: runtime.execution.collector, "_flush", "Completer.run"),
    ],
    ids=["claimer", "upkeep", "collector"],
)
async def test_a_part_that_crashes_is_started_again_and_counted(
    database_url: str, monkeypatch: pytest.MonkeyPatch, find: Callable[[Runtime], Any], method: str, name: str
) -> None:
    async with working(database_url, settings(HYBRID)) as app:
        runtime = runtime_of(app)
        owner = find(runtime)
        original = getattr(owner, method)
        crashed = asyncio.Event()

        async def crash_once(*args: Any, **options: Any) -> Any:
            if not crashed.is_set():
                crashed.set()
                raise RuntimeError("a defect")
            return await original(*args, **options)

        monkeypatch.setattr(owner, method, crash_once)
        runtime.wake()
        await runs(app)
        await eventually(lambda: runtime.supervisor.crashes[name] == 1, "the crash was counted")
        await runs(app, 3)


@pytest.mark.parametrize(
    ("find", "method", "name"),
    [
        (lambda orchestrator: orchestrator.actors.actors[0], "_poll_queue", "QueueActor.run"),
        (lambda orchestrator: orchestrator.upkeep, "_turn", "Upkeep.run"),
    ],
    ids=["results", "upkeep"],
)
async def test_a_part_of_an_orchestrator_that_crashes_is_started_again_and_counted(
    database_url: str, monkeypatch: pytest.MonkeyPatch, find: Callable[[Orchestrator], Any], method: str, name: str
) -> None:
    """Its worker parks results: without the orchestrator nobody ends them for an hour."""
    resources = prepare(database_url)
    await resources.messaging.open()
    orchestrator = orchestrator_process(database_url, resources.messaging)
    owner = find(orchestrator)
    original, crashed = getattr(owner, method), asyncio.Event()

    async def crash_once(*args: Any, **options: Any) -> Any:
        if not crashed.is_set():
            crashed.set()
            raise RuntimeError("a defect")
        return await original(*args, **options)

    monkeypatch.setattr(owner, method, crash_once)
    await orchestrator.start()
    try:
        await eventually(lambda: orchestrator.supervisor.crashes[name] == 1, "the crash was counted")
        patient = SweepSettings(Sweep(park_grace_ms=NEVER_MS, hint_grace_ms=NEVER_MS))
        async with working(database_url, settings(HYBRID, result_path="queued"), sweeps=patient) as app:
            await runs(app, 3)
        assert orchestrator.supervisor.crashes == {name: 1}
    finally:
        await orchestrator.stop()
        await resources.messaging.close()


async def test_starting_and_stopping_twice_is_starting_and_stopping_once(database_url: str) -> None:
    async with working(database_url, settings(HYBRID)) as app:
        runtime = runtime_of(app)
        await eventually(lambda: all(each.state.is_listening for each in events_of(app).listeners.values()), "it hears")
        parts = len(runtime.supervisor._tasks)
        await runtime.start()
        assert len(runtime.supervisor._tasks) == parts
        assert len(listening(database_url)) == 1
        await runs(app)
        await asyncio.gather(runtime.stop(), runtime.stop())
        await runtime.stop()
        assert not runtime.supervisor.running
        await eventually(lambda: listening(database_url) == [], "the server has seen that nobody listens any more")
        assert not events_of(app).is_running


def noting(ended: list[str], name: str) -> Callable[[], Coroutine[Any, Any, None]]:
    """A part that runs until it is cancelled, and says then that it has ended."""

    async def part() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(name)

    return part


async def test_parts_end_in_reverse_order_and_a_hanging_one_is_left_behind(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(supervision, "STOP_SECONDS", 0.05)
    ended, release = list[str](), asyncio.Event()

    async def hangs() -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                ended.append("hangs on")

    parts = Supervisor()
    parts.start([noting(ended, "first"), hangs, noting(ended, "last")])
    hanging = parts._tasks[1]
    await asyncio.sleep(0)
    await parts.stop()
    await parts.stop()
    release.set()
    await hanging
    assert ended == ["last", "hangs on", "hangs on", "first", "hangs on", "hangs on"]
    assert ["hangs" in record.message for record in caplog.records if record.levelno == logging.ERROR] == [True, True]


async def test_a_part_that_forgets_that_it_was_told_to_stop_is_told_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(supervision, "STOP_SECONDS", 0.05)

    async def forgets() -> None:
        with suppress(asyncio.CancelledError):  # as `asyncio.wait_for` did, when an answer came at that moment
            await asyncio.Event().wait()
        await asyncio.Event().wait()

    parts = Supervisor()
    parts.start([forgets])
    await asyncio.sleep(0)
    assert await parts.stop()
    assert not parts.running
    assert not [record.message for record in caplog.records if record.levelno >= logging.WARNING]


async def test_a_part_that_a_library_cancels_is_started_again_and_one_that_is_told_to_stop_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(supervision, "CRASHED", BackoffPolicy(0.0, 0.0))
    heard, again = list[str](), asyncio.Event()

    async def part() -> None:
        if not heard:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            future.cancel()  # as clients of brokers do with what is under way when a connection is lost
            await future
        again.set()
        await asyncio.Event().wait()

    parts = Supervisor(lambda: heard.append("crashed"))
    parts.start([part])
    await asyncio.wait_for(again.wait(), 30)
    assert heard == ["crashed"]
    await asyncio.wait_for(parts.stop(), 30)
    assert heard == ["crashed"]


async def test_service_that_crashes_again_and_again_is_logged_with_one_traceback(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pauses, crashes, real = list[float](), iter(["first", "first", "first", "second"]), asyncio.sleep

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        await real(0)

    monkeypatch.setattr("tasker.process.supervisor.asyncio.sleep", sleep)

    async def part() -> None:
        if (defect := next(crashes, None)) is not None:
            raise ValueError(defect)

    parts = Supervisor()
    parts.start([part])
    await asyncio.wait(parts._tasks)

    assert pauses == [0.5, 1.0, 2.0, 4.0]
    assert [record.exc_info is not None for record in caplog.records] == [True, False, False, True]
    assert "error=ValueError('first')" in caplog.text


async def test_a_part_whose_clean_up_fails_has_ended_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    begun = list[str]()

    async def part() -> None:
        begun.append("part")
        try:
            await asyncio.Event().wait()
        finally:
            raise RuntimeError("the connection was gone before")

    parts = Supervisor()
    parts.start([part])
    await asyncio.sleep(0)
    await asyncio.wait_for(parts.stop(), 30)
    assert begun == ["part"]
    assert [record.message.partition(" ")[0] for record in caplog.records] == ["service_crashed"]


async def test_a_start_that_fails_leaves_nobody_registered_and_no_lease_kept(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(service: MessagingService) -> None:
        raise BackendUnavailable("the broker is away")

    monkeypatch.setattr(MessagingService, "ensure_orchestration_queues", away)
    with pytest.raises(BackendUnavailable):
        async with working(database_url, settings(DeploymentMode.HYBRID, result_path="queued")):
            pass
    async with submitting(database_url) as program:
        assert await program._engine.connection.execute("select count(*) from tasker.workers") == [(0,)]
    assert not [thread.name for thread in threading.enumerate() if "lease" in thread.name]


async def test_a_stop_that_is_cut_off_forgets_no_part() -> None:
    ended, release = list[str](), asyncio.Event()

    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await release.wait()
            ended.append("slow")

    parts = Supervisor()
    parts.start([noting(ended, "first"), slow])
    await asyncio.sleep(0)
    stopping = asyncio.create_task(parts.stop())
    await asyncio.sleep(0)
    stopping.cancel()
    await asyncio.gather(stopping, return_exceptions=True)
    release.set()
    assert await asyncio.wait_for(parts.stop(), 30)
    assert ended == ["slow", "first"]
    assert not parts.running


async def test_an_orchestrator_whose_stop_is_cancelled_comes_to_its_end(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, resources = asyncio.all_tasks(), prepare(database_url)
    await resources.messaging.open()
    orchestrator = orchestrator_process(database_url, resources.messaging)
    await orchestrator.start()
    drain, stopping = orchestrator.actors.drain, asyncio.create_task(orchestrator.stop())

    async def cancelled() -> None:
        stopping.cancel()
        await drain()

    monkeypatch.setattr(orchestrator.actors, "drain", cancelled)
    with pytest.raises(asyncio.CancelledError):
        await stopping
    assert not orchestrator.supervisor.running
    await resources.messaging.close()
    nothing_is_open(database_url, before)
