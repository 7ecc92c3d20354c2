"""What the log says of an outage: one line when a server goes away, one when it is back, and nothing of errors."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import httpx
import pytest

import tasker
from tasker.app.configured import UNCONFIGURED
from tasker.app.orchestrator_assembly import orchestrator_process
from tasker.app.preparation import prepare
from tasker.messaging.listening_modes import EventSettings
from tasker.orchestration.sweep import SweepSettings
from tasker.settings.execution import Sweep
from tasker.settings.listening import Listener, ReadinessTiming
from tests.acceptance.fleet.test_outages import CONFIGURATION, HANDLERS, TEMPLATE, until, until_closed
from tests.integration.db.test_connection import free_port
from tests.support.command_line import write_workflow
from tests.support.fleets.fleet import Fleet
from tests.support.servers.brokers import KIND_OF, private_server
from tests.support.servers.private_postgres import Stoppable, copied
from tests.support.worker_settings import worker_settings

pytestmark = pytest.mark.slow

EVENTS = EventSettings(listener=Listener(retry_interval_seconds=0.1, max_retry_attempts=2))  # type: ignore[arg-type]
WORKER = worker_settings(lease_ms=1000, events=EVENTS)
SWEEPS = SweepSettings(Sweep(hint_grace_ms=200), timing=ReadinessTiming(fallback_polling_interval_seconds=0.3))
CONFIGURED = replace(CONFIGURATION, worker=WORKER)
OF_A_BUSY_MACHINE = ("event_loop_blocked", "event_loop_recovered")
"""A loop that got no time for a second says so, whatever else happens."""


@pytest.fixture
def database(tmp_path: Path, cluster: Path) -> Iterator[Stoppable]:
    database = Stoppable(copied(cluster, tmp_path / "pg"))
    yield database
    database.server.stop()


@pytest.fixture
def workflow(tmp_path: Path) -> Path:
    return write_workflow(tmp_path / "outage", TEMPLATE, HANDLERS)


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The first words of the lines that a process shows by default, from whichever library they come.

    Not those of new tasks, complete steps and ended tasks, nor of a busy machine, which are no news of an outage.
    """
    words = [record.getMessage().split()[0] for record in caplog.records if record.levelno >= logging.INFO]
    return [word for word in words if word not in ("Task", "Step", *OF_A_BUSY_MACHINE)]


def assert_no_alarm(caplog: pytest.LogCaptureFixture) -> None:
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []


async def eventually(true: Callable[[], bool]) -> None:
    async def ask() -> bool:
        return true()

    await until(ask)


async def test_a_database_that_is_away_for_longer_than_the_lease_is_told_once_and_once_when_it_is_back(
    database: Stoppable, workflow: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (workflow / "go").touch()
    async with AsyncExitStack() as stack:
        app = await stack.enter_async_context(tasker.App(database.server.url, configuration=CONFIGURED, sweeps=SWEEPS))
        resources = prepare(database.server.url)
        orchestrator = orchestrator_process(
            resources.url, resources.messaging, settings=WORKER, sweeps=SWEEPS, events=EVENTS
        )
        await orchestrator.start()
        await app.run(workflow, {"before": True})
        runtime = app.runtime
        assert runtime is not None
        listeners = orchestrator.events.listeners.values()
        caplog.clear()
        caplog.set_level(logging.INFO)
        former = runtime.worker.identity
        (workflow / "go").unlink()
        held = await app.submit(workflow, {"held": True})
        await eventually(lambda: runtime.worker.busy == 1)
        database.stop()
        await eventually(lambda: runtime.worker.slots.is_throttled("fenced"))
        await eventually(lambda: all(listener.state.failures > 5 for listener in listeners))
        assert told(caplog) == ["database_unreachable"], "a lease that is over with steps in hand belongs to the outage"
        (workflow / "go").touch()
        database.start()
        await eventually(lambda: runtime.worker.identity != former and not runtime.worker.slots.is_throttled("fenced"))
        await until_closed(app, app.breakers.database)
        report = await app.run(workflow, {"after": True})
        assert (await app.wait(held.task_uuid)).status == "complete"
        await orchestrator.stop()
        await resources.messaging.close()
    assert report.status == "complete"
    lines = [line for line in told(caplog) if line not in ("worker_lost", "repairs_made")]  # of the step in hand
    assert lines[:2] == ["database_unreachable", "database_reconnected"]
    assert {*lines[2:]} <= {"worker_fenced"}, "a busy machine may miss a lease as short as this one later on"
    assert_no_alarm(caplog)


@pytest.mark.servers
@pytest.mark.parametrize("backend", ["rabbitmq", "redis", "nats"])
async def test_a_broker_that_is_away_is_told_once_and_once_when_it_is_back(
    backend: str, database: Stoppable, workflow: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (workflow / "go").touch()
    with private_server(KIND_OF[backend]) as broker:
        async with tasker.App(
            database.server.url,
            configuration=replace(UNCONFIGURED, worker=WORKER, breakers=CONFIGURATION.breakers),
            sweeps=SWEEPS,
            backend=backend,
            backend_settings={"url": broker.url},
        ) as app:
            await app.run(workflow, {"before": True})
            caplog.clear()
            caplog.set_level(logging.INFO)
            broker.kill()
            await eventually(lambda: app.breakers.messaging.metrics().failures > 4)
            task = (await app.submit(workflow, {"meanwhile": True})).task_uuid
            assert told(caplog) == ["broker_unreachable"]
            await asyncio.to_thread(broker.start)
            app.breakers.messaging.force_closed()
            async with asyncio.timeout(60):
                report = await app.wait(task)  # it was told without the broker, which may be found again later
            await eventually(lambda: "broker_reconnected" in told(caplog))
    assert report.status == "complete"
    lines = [line for line in told(caplog) if line != "repairs_made"]
    assert lines[:2] == ["broker_unreachable", "broker_reconnected"]
    assert all(line != following for line, following in pairwise(lines))  # one that has just come may go once more
    assert_no_alarm(caplog)


PATHS = ("/v1/tasks", "/v1/workers", "/health/detailed", "/ready", "/metrics", "/ui", "/ui/tasks")


def alarms(log: str) -> list[str]:
    """The first words of the lines from WARNING on, but those of a busy machine."""
    words = re.findall(r" (?:WARNING|ERROR|CRITICAL) \S+ (\S+)", log)
    return [word for word in words if word not in OF_A_BUSY_MACHINE]


async def test_server_logs_an_outage_once_whatever_traffic_comes(database: Stoppable, tmp_path: Path) -> None:
    fleet, port = Fleet(database.server.url, tmp_path), free_port()
    options = ("--no-config", "--port", str(port), "--database-url", database.server.url)
    try:
        fleet.program("server", "-m", "tasker", "server", *options)
        await eventually(lambda: "listens on" in fleet.log("server"))
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:

            async def ask(path: str) -> int:
                return (await client.get(path)).status_code

            async def submit() -> int:
                return (await client.post("/v1/tasks", json={"namespace": "no", "name": "such"})).status_code

            async def traffic() -> list[int]:
                return await asyncio.gather(*(ask(path) for path in PATHS for _ in range(3)), submit(), submit())

            async def answers() -> bool:
                return await ask("/v1/tasks") == 200

            before = alarms(fleet.log("server"))
            await traffic()
            database.stop()
            meanwhile = [status for _ in range(4) for status in await traffic()]
            database.start()
            await until(answers)
            await traffic()
    finally:
        fleet.stop()

    assert 503 in meanwhile
    assert before == []
    assert alarms(fleet.log("server")) == ["database_unreachable", "database_reconnected"], fleet.log("server")
