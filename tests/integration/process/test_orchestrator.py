"""An orchestrator in this process: what it does with the messages of each backend, and its entry in the registry."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from tasker.app import TaskRequester
from tasker.app.orchestrator_assembly import orchestrator_process
from tasker.app.preparation import prepare
from tasker.clock import new_task_uuid
from tasker.db.connection import Connection
from tasker.engine.fleet_rules import DEFAULT_RULES, FleetRules
from tasker.engine.plans import PlanStore
from tasker.errors import NotStorable, UsageError
from tasker.messaging.listening_modes import ORCHESTRATOR_EVENTS, DeploymentMode
from tasker.orchestration.sweep import SweepSettings
from tasker.process.orchestrator import Orchestrator
from tasker.services.fleet.overview import Workers
from tasker.settings.listening import ReadinessTiming
from tests.support.command_line import invoke
from tests.support.random_plans import Spec, build_plan
from tests.support.servers import brokers
from tests.support.worker_settings import worker_settings

PLAN = build_plan(Spec("only"), namespace="asked", name="for_it")
REQUESTS = "orchestration_task_requests"
BROKERS = [name for name in brokers.ENGINE_BACKENDS if name not in ("pgmq", "memory")]


@asynccontextmanager
async def orchestrating(
    url: str, backend: str = "pgmq", settings: Any = None, *, rules: FleetRules = DEFAULT_RULES, **options: Any
) -> AsyncIterator[Orchestrator]:
    resources = prepare(url, backend=backend, backend_settings=settings)
    await resources.messaging.open()
    quick = worker_settings(lease_ms=300, rules=rules)
    orchestrator = orchestrator_process(url, resources.messaging, settings=quick, **options)
    await orchestrator.start()
    try:
        yield orchestrator
    finally:
        await orchestrator.stop()
        if settings:
            await brokers.remove_queues(resources.messaging, settings)
        await resources.messaging.close()


async def eventually(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(60):
        while not await holds():
            await asyncio.sleep(0.02)


async def created(url: str, task: str) -> bool:
    async with await psycopg.AsyncConnection.connect(url) as connection:
        cursor = await connection.execute("select from tasker.tasks where task_uuid = %s", (task,))
        return await cursor.fetchone() is not None


async def register(url: str) -> None:
    connection = Connection(url)
    await PlanStore(connection).register(PLAN)
    await connection.close()


@pytest.mark.parametrize("backend", BROKERS)
async def test_who_reaches_only_the_broker_gets_a_task(database_url: str, backend: str) -> None:
    settings = brokers.engine_settings(backend)
    await register(database_url)
    async with orchestrating(database_url, backend, settings):
        async with TaskRequester(backend, backend_settings=settings) as requester:
            task = await requester.request("asked/for_it", {"n": 1}, priority=3)
            again = await requester.request("asked/for_it", {"n": 1}, task_uuid=task, priority=3)
            await requester.finalize(task)
        await eventually(lambda: created(database_url, task))
    assert again == task


@pytest.mark.parametrize(("asked", "requests"), [("drop:1", 0), ("dup:1", 2)])
async def test_requests_have_the_faults_that_were_asked_for(
    database_url: str, monkeypatch: pytest.MonkeyPatch, asked: str, requests: int
) -> None:
    monkeypatch.setenv("TASKER_CHAOS", asked)
    async with TaskRequester("pgmq", database_url=database_url) as requester:
        await requester.request("asked/for_it", {"n": 1})
    async with await psycopg.AsyncConnection.connect(database_url) as observer:
        rows = await observer.execute("select count(*) from pgmq.q_orchestration_task_requests")
        assert await rows.fetchone() == (requests,)


async def test_the_command_asks_for_a_task_and_refusals_are_listed(database_url: str) -> None:
    await register(database_url)
    arguments = ("task", "request", "asked/for_it", "--set", "n=2", "--priority", "4")
    asked = await asyncio.to_thread(lambda: invoke(*arguments, database=database_url))
    wrong = await asyncio.to_thread(lambda: invoke("task", "request", "asked/for_nothing", database=database_url))
    assert (asked.exit_code, wrong.exit_code) == (0, 0), asked.output + wrong.output

    async def refused() -> bool:
        output = (await asyncio.to_thread(lambda: invoke("task", "refused", database=database_url))).output
        return "no template asked/for_nothing is registered" in output

    async with orchestrating(database_url):
        await eventually(lambda: created(database_url, asked.output.strip()))
        await eventually(refused)


@pytest.mark.parametrize(
    ("target", "context", "options", "message"),
    [
        ("nonsense", {}, {}, "expected a template file"),
        ("asked/for_it", {"a": float("nan")}, {}, "nan is not a JSON number"),
        ("asked/for_it", {}, {"priority": "hihg"}, "or a whole number"),
        ("asked/for_it", {}, {"task_uuid": "7"}, "not a task's identifier"),
    ],
)
async def test_a_wrong_request_is_refused_before_it_is_sent(
    database_url: str, target: str, context: dict[str, Any], options: dict[str, Any], message: str
) -> None:
    async with TaskRequester("pgmq", database_url=database_url) as requester:
        with pytest.raises((UsageError, NotStorable)) as raised:
            await requester.request(target, context, **options)
    assert message in f"{raised.value} {raised.value.hint}"


@pytest.mark.parametrize(("backend", "message"), [("pgmq", "no database is named"), ("memory", "inside one process")])
def test_a_backend_that_no_orchestrator_shares_is_refused(backend: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        TaskRequester(backend)


@pytest.mark.parametrize("command", ["worker", "orchestrator"])
def test_processes_of_a_fleet_refuse_the_backend_that_others_cannot_reach(command: str) -> None:
    found = invoke(command, "--no-config", "--backend", "memory")
    assert found.exit_code == 2
    assert "the memory backend lives inside one process" in found.output


async def test_an_orchestrator_enters_the_registry_stays_and_leaves(database_url: str) -> None:
    connection = Connection(database_url)
    workers = Workers(connection)

    async def entries() -> list[tuple[Any, ...]]:
        return [(row.worker, row.kind, row.state) for row in await workers.list()]

    async with orchestrating(database_url) as orchestrator:
        entry = [(orchestrator.identity, "orchestrator", "live")]
        await orchestrator.start()

        async def entered() -> bool:
            return await entries() == entry

        await eventually(entered)
        (first,) = await workers.list()

        async def has_beaten() -> bool:
            return (await workers.list())[0].beat_at > first.beat_at

        await eventually(has_beaten)
        await connection.execute("delete from tasker.workers")
        await eventually(entered)
        await orchestrator.stop()
        assert await entries() == []
        await orchestrator.stop()
    assert [row.state for row in await workers.list(stopped=True)] == ["stopped"]
    await connection.close()


async def test_a_request_is_met_by_one_of_several_orchestrators(database_url: str) -> None:
    await register(database_url)
    async with orchestrating(database_url), orchestrating(database_url):
        async with TaskRequester("pgmq", database_url=database_url) as requester:
            same = new_task_uuid()
            for _ in range(5):
                await requester.request("asked/for_it", {"n": 3}, task_uuid=same)
        await eventually(lambda: created(database_url, same))


async def test_an_orchestrator_that_stops_ends_what_it_has_taken(database_url: str) -> None:
    """Otherwise the requests in its hands would stay hidden from all others for half a minute."""
    await register(database_url)
    messages = "select count(*), count(*) filter (where vt > clock_timestamp()) from pgmq.q_orchestration_task_requests"
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as observer:

        async def waiting() -> tuple[Any, ...] | None:
            return await (await observer.execute(messages)).fetchone()

        async def taken() -> bool:
            return await waiting() == (1, 1)

        async with orchestrating(database_url) as orchestrator:
            async with await psycopg.AsyncConnection.connect(database_url) as holder:
                await holder.execute("lock table tasker.tasks")
                async with TaskRequester("pgmq", database_url=database_url) as requester:
                    task = await requester.request("asked/for_it", {"n": 1})
                await eventually(taken)
                stopping = asyncio.create_task(orchestrator.stop())
                await waiting()  # the stop has begun
            await stopping
        assert await waiting() == (0, 0)
    assert await created(database_url, task)


async def test_without_any_poll_a_request_that_becomes_visible_later_is_met(database_url: str) -> None:
    """It was announced when nobody could receive it, and no row tells a sweep of it."""
    await register(database_url)
    events = replace(ORCHESTRATOR_EVENTS, deployment_mode=DeploymentMode.EVENT_DRIVEN_ONLY)
    task = new_task_uuid()
    message = json.dumps({"request_id": task, "namespace": "asked", "template": "for_it", "context": {}})

    async with orchestrating(database_url, rules=FleetRules(hidden_seconds=1), events=events) as orchestrator:

        async def hears() -> bool:
            return orchestrator.events.longest_pause() is None

        await eventually(hears)
        async with await psycopg.AsyncConnection.connect(database_url) as connection:
            await connection.execute("select pgmq.send('orchestration_task_requests', %s::jsonb, 1)", (message,))
        await eventually(lambda: created(database_url, task))


@pytest.mark.parametrize(
    ("backend", "mode"),
    [
        ("pgmq", DeploymentMode.EVENT_DRIVEN_ONLY),
        ("pgmq", DeploymentMode.POLLING_ONLY),
        ("redis", DeploymentMode.EVENT_DRIVEN_ONLY),
    ],
)
async def test_while_its_queue_is_paused_a_request_is_not_even_received_and_then_it_is_met_at_once(
    database_url: str, backend: str, mode: DeploymentMode
) -> None:
    """Both are announced, and told with the turns of sweeps where nothing is announced."""
    await register(database_url)
    settings = brokers.engine_settings(backend) if backend != "pgmq" else None
    place = {"backend_settings": settings} if settings else {"database_url": database_url}
    sweeps = SweepSettings(
        timing=ReadinessTiming(fallback_polling_interval_seconds=0.2 if mode is DeploymentMode.POLLING_ONLY else 3600)
    )
    options = {"events": replace(ORCHESTRATOR_EVENTS, deployment_mode=mode), "sweeps": sweeps}
    async with (
        orchestrating(database_url, backend, settings, **options) as orchestrator,
        TaskRequester(backend, **place) as requester,
    ):

        async def held() -> bool:
            return orchestrator.actors.pauses.is_paused(REQUESTS)

        async def hears() -> bool:
            return not await held() and (
                mode is DeploymentMode.POLLING_ONLY or orchestrator.events.longest_pause() is None
            )

        await eventually(hears)
        await of_queue("pause", REQUESTS, database_url)
        await eventually(held)
        task, marker = await requester.request("asked/for_it", {"n": 1}), new_task_uuid()
        await requester.finalize(marker)
        await eventually(lambda: set_aside(database_url, marker))
        assert not await created(database_url, task)
        if backend == "pgmq":
            assert await received(database_url) == [0]
        await of_queue("resume", REQUESTS, database_url)
        await eventually(lambda: created(database_url, task))


async def test_an_orchestrator_that_starts_takes_nothing_from_a_queue_that_was_paused_before(database_url: str) -> None:
    await register(database_url)
    prepare(database_url)
    await of_queue("pause", REQUESTS, database_url)
    marker = new_task_uuid()
    async with TaskRequester("pgmq", database_url=database_url) as requester:
        task = await requester.request("asked/for_it", {"n": 1})
        await requester.finalize(marker)

    async with orchestrating(database_url):
        await eventually(lambda: set_aside(database_url, marker))
        assert await received(database_url) == [0]
        await of_queue("resume", REQUESTS, database_url)
        await eventually(lambda: created(database_url, task))


async def of_queue(command: str, queue: str, url: str) -> None:
    result = await asyncio.to_thread(lambda: invoke(command, "--queue", queue, database=url))
    assert result.exit_code == 0, result.output


async def set_aside(url: str, task: str) -> bool:
    """The finalizations were taken: this one names a task that there is not."""
    async with await psycopg.AsyncConnection.connect(url) as connection:
        cursor = await connection.execute("select reason from tasker.poison_messages")
        return any(task in reason for (reason,) in await cursor.fetchall())


async def received(url: str) -> list[int]:
    """How often each request was."""
    async with await psycopg.AsyncConnection.connect(url) as connection:
        cursor = await connection.execute("select read_ct from pgmq.q_orchestration_task_requests")
        return [count for (count,) in await cursor.fetchall()]
