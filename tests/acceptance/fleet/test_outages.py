"""Servers are stopped under a running App: callers are told at once, results are kept, everything goes on after it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

import tasker
from tasker.app.configured import UNCONFIGURED
from tasker.db.embedded import watch
from tasker.errors import DatabaseBreakerOpen, DatabaseError
from tasker.orchestration.sweep import SweepSettings
from tasker.resilience.breaker import BreakerState, GuardedCircuit
from tasker.resilience.breakers import BreakerPolicies
from tasker.settings.execution import Sweep
from tasker.settings.listening import ReadinessTiming
from tasker.template.plan import BreakerPolicy
from tasker.views.tasks import TaskReport
from tests.support.command_line import HOLDING, Running, write_workflow
from tests.support.servers.brokers import REDIS, PrivateServer, private_server
from tests.support.servers.private_postgres import Stoppable as Database
from tests.support.servers.private_postgres import copied

pytestmark = pytest.mark.slow

QUICK = BreakerPolicy(failure_threshold=2, timeout_seconds=1.0, success_threshold=2)
CONFIGURATION = replace(
    UNCONFIGURED, breakers=BreakerPolicies(QUICK, QUICK, QUICK, QUICK, slow_completion_ms=10_000, settle_seconds=0)
)
SWEEPS = SweepSettings(Sweep(hint_grace_ms=200), timing=ReadinessTiming(fallback_polling_interval_seconds=0.3))
TEMPLATE = """
    name: outage
    namespace: outages
    version: 1.0.0
    steps:
      - {name: begin, handler: begin}
      - {name: hold, handler: wait, depends_on: [begin]}
      - {name: end, handler: end, depends_on: [hold]}
"""
HANDLERS = (
    HOLDING
    + """

    @step_handler("wait")
    async def wait():
        while not (FOLDER / "go").exists():
            await asyncio.sleep(0.02)
        return {"waited": True}
"""
)


@pytest.fixture
def database(tmp_path: Path, cluster: Path) -> Iterator[Database]:
    database = Database(copied(cluster, tmp_path / "pg"))
    yield database
    database.server.stop()


@pytest.fixture
def workflow(tmp_path: Path) -> Path:
    return write_workflow(tmp_path / "outage", TEMPLATE, HANDLERS)


async def until(true: Callable[[], Awaitable[bool]]) -> None:
    """Ask until it is true; an error is an answer like `not yet`."""
    async with asyncio.timeout(60):
        while True:
            with suppress(DatabaseError):
                if await true():
                    return
            await asyncio.sleep(0.05)


async def until_opened(guard: GuardedCircuit) -> None:
    async def has_opened() -> bool:
        return guard.metrics().opened > 0

    await until(has_opened)


async def until_held(app: tasker.App, task: str) -> None:
    """The step `hold` runs."""

    async def holds() -> bool:
        return (await app.tasks.report(task)).steps["hold"].state == "in_progress"

    await until(holds)


async def until_closed(app: tasker.App, guard: GuardedCircuit) -> None:
    """The breaker has closed; callers go on asking meanwhile."""

    async def is_closed() -> bool:
        await app.tasks.list(limit=1)
        return guard.is_healthy()

    await until(is_closed)


async def test_while_the_database_is_away_callers_are_refused_at_once_and_no_result_is_lost(
    database: Database, workflow: Path
) -> None:
    async with tasker.App(database.server.url, configuration=CONFIGURATION, sweeps=SWEEPS) as app:
        task = (await app.submit(workflow, {})).task_uuid
        await until_held(app, task)
        database.stop()
        for _ in range(2):
            with pytest.raises(DatabaseError):
                await app.tasks.state(task)
        with pytest.raises(DatabaseBreakerOpen) as refusal:
            await app.submit(workflow, {"another": 1})
        (workflow / "go").touch()
        await until_opened(app.breakers.completion.guard)
        await until_opened(app.breakers.task_readiness)
        app.breakers.database.force_open()
        health = app.breakers.health()
        database.start()
        report = await finished(app, task)
        for guard in (app.breakers.database, app.breakers.completion.guard, app.breakers.task_readiness):
            await until_closed(app, guard)

    assert 0 < (refusal.value.retry_after or 0) <= QUICK.timeout_seconds
    assert health.status == "unhealthy"
    assert "database: open" in health.message
    assert "completion: " in health.message
    assert "cannot connect to database 'tasker'" in health.message
    assert report.status == "complete"
    assert {name: step.attempts for name, step in report.steps.items()} == {"begin": 1, "hold": 1, "end": 1}


@pytest.fixture
def redis() -> Iterator[PrivateServer]:
    with private_server(REDIS) as server:
        yield server


def app_on(database: Database, redis: PrivateServer) -> tasker.App:
    return tasker.App(
        database.server.url,
        configuration=CONFIGURATION,
        sweeps=SWEEPS,
        backend="redis",
        backend_settings={"url": redis.url},
    )


async def test_while_the_broker_is_away_its_breaker_alone_opens_and_the_task_runs_once_it_is_back(
    database: Database, redis: PrivateServer, workflow: Path
) -> None:
    (workflow / "go").touch()
    async with app_on(database, redis) as app:
        await app.plan(workflow)
        redis.kill()
        await until_opened(app.breakers.messaging)
        task = (await app.submit(workflow, {})).task_uuid
        health = await app.views.health()
        app.breakers.messaging.force_open()
        breakers = app.breakers.health()
        redis.start()
        report = await finished(app, task)

    assert health["components"]["database"] == "healthy"
    assert health["components"]["messaging"] == "unhealthy"
    assert breakers.status == "unhealthy"
    assert "messaging: open" in breakers.message
    assert "1 open" in breakers.message
    assert report.status == "complete"
    assert {step.attempts for step in report.steps.values()} == {1}


async def test_two_outages_at_once_are_told_apart(database: Database, redis: PrivateServer, workflow: Path) -> None:
    async with app_on(database, redis) as app:
        await app.plan(workflow)
        redis.kill()
        await until_opened(app.breakers.messaging)
        database.stop()
        for _ in range(2):
            with pytest.raises(DatabaseError):
                await app.tasks.list()
        app.breakers.messaging.force_open()
        readings = {guard.name: guard.reading() for guard in (app.breakers.messaging, app.breakers.database)}
        redis.start()
        database.start()

    assert {reading.state for reading in readings.values()} == {BreakerState.OPEN}
    assert "Redis" in readings["messaging"].error
    assert "database 'tasker'" in readings["database"].error


async def finished(app: tasker.App, task: str) -> TaskReport:
    """The report of the task once it has ended, however often asking fails before."""

    async def has_ended() -> bool:
        return (await app.tasks.state(task))[1]

    await until(has_ended)
    return await app.tasks.report(task)


def test_a_run_starts_its_own_database_again_when_that_is_killed_and_ends_well(workflow: Path, tmp_path: Path) -> None:
    folder = tmp_path / "own"
    run = Running.start("run", workflow, "--json", "--data-dir", folder)
    run.wait_for("hold: ▶ in_progress")
    killed = watch.postmaster_pid(str(folder / "data" / "postmaster.pid"))
    assert killed is not None

    os.kill(killed, signal.SIGKILL)
    run.wait_for(f"the embedded PostgreSQL of {folder} has died; starting it again")
    (workflow / "go").touch()
    code, output = run.end()

    assert code == 0, run.told
    assert json.loads(output)["status"] == "complete"
    assert run.told.count("has died") == 1
    assert "Traceback" not in run.told
