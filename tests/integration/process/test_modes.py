"""How a process hears of work in each mode, and what becomes of it when its listener is lost."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

import pytest

import tasker
from tasker.messaging.listening_modes import DeploymentMode, EventSettings, HealthStatus, MessageSource
from tasker.orchestration.sweep import SweepSettings
from tasker.plugins.hook_arguments import QueuePolled
from tasker.settings.execution import Sweep
from tasker.settings.listening import ReadinessTiming
from tests.integration.process.programs import (
    NEVER_MS,
    QUICK,
    cut,
    events_of,
    eventually,
    listening,
    plan,
    runs,
    runtime_of,
    settings,
    submitting,
    working,
)
from tests.support.servers.brokers import engine_settings, remove_queues

POLLING, EVENTS, HYBRID = DeploymentMode.POLLING_ONLY, DeploymentMode.EVENT_DRIVEN_ONLY, DeploymentMode.HYBRID
DATABASE = "notifications of the database"
PUSHED = "messages of ears"
RESULTS = "orchestration_step_results"


def hears(app: tasker.App) -> bool:
    listeners = events_of(app).listeners.values()
    return bool(listeners) and all(each.state.is_listening for each in listeners)


def rests(app: tasker.App) -> bool:
    """The worker is marked asleep and waits, and nothing has woken it that it did not notice yet."""
    claimer = runtime_of(app).execution.claimer
    event = claimer._poller._event
    return claimer._asleep and bool(event._waiters) and not event.is_set()  # type: ignore[attr-defined]


@pytest.mark.parametrize(("configured", "listeners"), [(POLLING, set()), (EVENTS, {DATABASE}), (HYBRID, {DATABASE})])
async def test_on_pgmq_every_mode_is_as_configured(
    database_url: str, configured: DeploymentMode, listeners: set[str]
) -> None:
    async with working(database_url, settings(configured)) as app, submitting(database_url) as program:
        assert (events_of(app).mode, set(events_of(app).listeners)) == (configured, listeners)
        if listeners:
            await eventually(lambda: hears(app), "it hears")
        await runs(program, 3)
        assert len(listening(database_url)) == len(listeners)


@pytest.mark.parametrize("configured", DeploymentMode)
async def test_a_pushing_broker_is_never_polled_below_its_push(database_url: str, configured: DeploymentMode) -> None:
    broker = engine_settings("rabbitmq")
    options = {"backend": "rabbitmq", "backend_settings": broker}
    async with working(database_url, settings(configured), **options) as app:
        events = events_of(app)
        assert events.mode is (POLLING if configured is POLLING else EVENTS)
        assert set(events.listeners) == (set() if configured is POLLING else {DATABASE, PUSHED})
        if configured is not POLLING:
            await eventually(lambda: hears(app), "it hears")
            assert events.longest_pause() is None
        async with submitting(database_url, **options) as program:
            await runs(program, 3)
        await remove_queues(app.messaging, broker)


@pytest.mark.parametrize("configured", DeploymentMode)
async def test_tasks_run_on_the_memory_backend_in_every_mode(database_url: str, configured: DeploymentMode) -> None:
    async with working(database_url, settings(configured), backend="memory") as app:
        await runs(app, 3)
        assert events_of(app).mode is (POLLING if configured is POLLING else EVENTS)


async def test_without_any_poll_work_is_announced(database_url: str) -> None:
    never = replace(QUICK, poll_ms=NEVER_MS, lost_poll_ms=NEVER_MS)
    blind = SweepSettings(Sweep(hint_grace_ms=NEVER_MS))  # or a sweep would wake the worker in the end
    async with working(database_url, settings(EVENTS, never), sweeps=blind) as app, submitting(database_url) as program:
        await eventually(lambda: hears(app) and rests(app), "it hears, and the worker rests")
        await runs(program, 5)
        statistics = events_of(app).statistics()
    assert statistics.found_by_polling == 0
    assert (statistics.deployment_mode_score, statistics.success_rate) == (1.0, 1.0)
    assert statistics.events_processed >= 1
    assert statistics.average_latency_ms is not None


@pytest.mark.parametrize("mode", [EVENTS, HYBRID])
async def test_a_lost_listener_is_replaced_by_polls_until_it_is_back(
    database_url: str, mode: DeploymentMode, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG, "tasker.events")
    slow = replace(QUICK, poll_ms=NEVER_MS, lost_poll_ms=50, listener=QUICK.listener.replace(max_retry_attempts=10_000))
    blind = SweepSettings(Sweep(hint_grace_ms=NEVER_MS))  # or a sweep would wake the worker in the end
    async with working(database_url, settings(mode, slow), sweeps=blind) as app, submitting(database_url) as program:
        events = events_of(app)
        listener = events.listeners[DATABASE]
        await eventually(lambda: hears(app) and rests(app), "it hears, and the worker rests")
        with monkeypatch.context() as cut_off:
            cut_off.setattr(listener, "source", replace(listener.source, news=refused))
            cut(database_url)
            await eventually(lambda: not hears(app), "the loss is seen")
            assert events.longest_pause() == 0.05
            await eventually(lambda: events.health().status is HealthStatus.DEGRADED, "its health says so")
            await eventually(lambda: rests(app), "the look that the loss led to is over")
            async with asyncio.timeout(60):  # something else may wake the worker, too, in the moment of a submission
                while not events.statistics().found_by_polling:
                    await runs(program)
            assert listener.state.reception is MessageSource.POLLING_FALLBACK
        await eventually(lambda: hears(app), "it is back")
        assert events.health().status is HealthStatus.HEALTHY
        await runs(program, 3)
        found = events.listening()
        assert (found.all_listen, found.polls_instead, found.reconnections, found.switches) == (True, False, 1, 2)
        assert found.received > 0
        assert found.lag_seconds is not None
    lines = [record.getMessage() for record in caplog.records]
    assert [("no notifications" in line, "listening" in line) for line in lines if DATABASE in line] == [
        (False, True),
        (True, True),
        (False, True),
    ]
    (lost,) = [line for line in lines if "no notifications" in line]
    assert "polling every 50 ms" in lost


async def refused(settings: EventSettings) -> object:
    """A source that cannot be opened."""
    from tasker.errors import DatabaseUnavailable

    raise DatabaseUnavailable("listening on nowhere ended")
    yield


async def test_a_listener_that_crashes_is_not_taken_for_one_that_hears(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with working(database_url, settings(EVENTS)) as app, submitting(database_url) as program:
        events = events_of(app)
        await eventually(lambda: hears(app), "it hears")
        with monkeypatch.context() as broken:
            broken.setattr(
                events.listeners[DATABASE], "source", replace(events.listeners[DATABASE].source, news=breaks)
            )
            cut(database_url)
            crashes = runtime_of(app).supervisor.crashes
            await eventually(lambda: crashes.total() > 0 and not hears(app), "it crashed, and is known to")
            assert events.longest_pause() == QUICK.lost_poll_ms / 1000
            assert "Listener.run crashed" in runtime_of(app).health().reason
            await runs(program, 2)
        await eventually(lambda: hears(app), "it is back")


async def breaks(settings: EventSettings) -> object:
    """A source whose library has a defect; it breaks after it was open."""
    yield None
    raise ValueError("not what anybody expects")


async def test_a_listener_that_stays_lost_is_told_loudly_once(
    database_url: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    never = replace(QUICK, listener=QUICK.listener.replace(retry_interval_seconds=0.01, max_retry_attempts=3))
    async with working(database_url, settings(EVENTS, never)) as app:
        listener = events_of(app).listeners[DATABASE]
        await eventually(lambda: hears(app), "it hears")
        monkeypatch.setattr(listener, "source", replace(listener.source, news=refused))
        cut(database_url)
        await eventually(lambda: listener.state.failures > 10, "it failed often")
        assert events_of(app).health().status is HealthStatus.UNHEALTHY
    lines = [record for record in caplog.records if "after 4 attempts" in record.message and DATABASE in record.message]
    assert [record.levelno for record in lines] == [logging.WARNING], "it works on by polling: nobody need come"


async def test_an_event_driven_worker_asks_for_nothing_while_it_has_nothing_to_do(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted at the engine: while other parts of the process go round many times, no look at the queue is made."""
    looks = 0

    async def look(args: object) -> dict[str, object]:
        nonlocal looks
        looks += 1
        return await claim(args)  # type: ignore[arg-type]

    async with working(database_url, settings(EVENTS)) as app:
        runtime = runtime_of(app)
        claim = runtime.execution.claimer._engine.claim
        monkeypatch.setattr(runtime.execution.claimer._engine, "claim", look)
        await runs(app)
        await eventually(lambda: hears(app), "it hears")
        await eventually(lambda: rests(app), "it sleeps")
        before, rounds = looks, 0
        health = events_of(app).health

        def counted() -> bool:
            nonlocal rounds
            health()
            rounds += 1
            return rounds > 150  # about eight polls of a worker that polls

        await eventually(counted, "time has passed")
        assert looks == before
        await runs(app)
        assert looks > before


async def test_what_lies_in_the_queue_unannounced_is_found_by_the_polls_of_hybrid(database_url: str) -> None:
    """The announcement is withheld: the worker does not hear of the channel any more, though it listens."""
    async with working(database_url, settings(HYBRID)) as app, submitting(database_url) as program:
        await eventually(lambda: hears(app) and rests(app), "it hears, and the look that this led to is over")
        runtime_of(app).execution.claimer.wake = lambda: None  # type: ignore[method-assign]
        await runs(program, 3)  # a look that something else led to may find these
        await runs(program, 3)
        assert events_of(app).statistics().found_by_polling > 0


async def test_a_parked_result_is_announced_to_whoever_ends_it(database_url: str) -> None:
    never = replace(QUICK, poll_ms=NEVER_MS, lost_poll_ms=NEVER_MS)
    chosen = settings(EVENTS, never, result_path="queued")
    async with working(database_url, chosen) as app, submitting(database_url) as program:
        await eventually(lambda: hears(app), "it hears")
        await runs(program, 3)


async def until(app: tasker.App, rows: str) -> None:
    """Wait for the query to have rows."""
    async with asyncio.timeout(60):
        while not await app._engine.connection.execute(rows):
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("configured", [POLLING, EVENTS])
async def test_a_worker_that_ends_parked_results_takes_none_while_their_queue_is_paused(
    database_url: str, configured: DeploymentMode
) -> None:
    chosen = settings(configured, result_path="queued")
    sweeps = SweepSettings(
        Sweep(park_grace_ms=0),
        timing=ReadinessTiming(fallback_polling_interval_seconds=0.2 if configured is POLLING else 3600),
    )
    async with working(database_url, chosen, sweeps=sweeps) as app, submitting(database_url) as program:
        pauses = runtime_of(app).actors.pauses
        await eventually(lambda: not pauses.is_paused(RESULTS) and (configured is POLLING or hears(app)), "it hears")
        await program.pause(queue=RESULTS)
        await eventually(lambda: pauses.is_paused(RESULTS), "it knows")

        task = (await program.submit(plan())).task_uuid
        await until(program, f"select 1 from pgmq.q_{RESULTS}")  # it is sent after the step was parked
        if configured is POLLING:  # it has polled meanwhile
            turn = "select 1 from tasker.turns where taken_at > (select max(hinted_at) from tasker.workflow_steps)"
            await until(program, turn)
        received = await program._engine.connection.execute(f"select read_ct from pgmq.q_{RESULTS}")
        assert await program.resume(queue=RESULTS) == 1

        assert (await program.wait(task, timeout=60)).status == "complete"
    assert received == [(0,)]


async def test_workers_of_different_modes_share_the_work(database_url: str) -> None:
    """Each step runs once, whoever hears of it first."""
    async with (
        working(database_url, settings(EVENTS)),
        working(database_url, settings(POLLING)),
        submitting(database_url) as program,
    ):
        await runs(program, 40)
        rows = await program._engine.connection.execute(
            "select count(*), max(attempts), (select count(*) from tasker.violations_v1('{}')) "
            "from tasker.workflow_steps"
        )
    assert rows == [(80, 1, 0)]


@pytest.mark.parametrize(("mode", "announced"), [(EVENTS, True), (POLLING, False)])
async def test_each_look_at_a_queue_is_told_with_what_led_to_it(
    database_url: str, mode: DeploymentMode, announced: bool
) -> None:
    heard: list[QueuePolled] = []
    blind = SweepSettings(Sweep(hint_grace_ms=NEVER_MS))
    async with working(database_url, settings(mode), sweeps=blind) as app, submitting(database_url) as program:
        events = events_of(app)
        events._on_polled = heard.append
        await eventually(lambda: rests(app) and (hears(app) or mode is POLLING), "the worker rests")
        heard.clear()
        await runs(program, 1)
        await eventually(lambda: any(each.found for each in heard), "it found work")
        unmeasured = events.settings.health.replace(performance_monitoring_enabled=False)
        events.change(replace(events.settings, health=unmeasured))
        seen = len(heard)
        await runs(program, 1)
        assert len(heard) == seen, "what is not measured is not told"
    assert next(each.announced for each in heard if each.found) is announced
    assert all(each.duration_ms > 0 and not each.failed for each in heard if each.found)
