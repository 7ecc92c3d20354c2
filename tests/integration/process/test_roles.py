"""Each kind of process does its work under a role of its own, and is refused what is not its work."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest

import tasker
from tasker.app.configured import UNCONFIGURED
from tasker.app.orchestrator_assembly import orchestrator_process
from tasker.app.preparation import prepare
from tasker.app.worker_assembly import worker_process
from tasker.clock import new_task_uuid
from tasker.db.connection import Connection
from tasker.db.roles import KINDS
from tasker.engine.calls import Engine
from tasker.engine.plans import PlanStore
from tasker.errors import StateMachineError, TemplateError
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.messaging.backends import load_backend
from tasker.messaging.listening_modes import DeploymentMode
from tasker.messaging.service import MessagingService
from tasker.services.operators.pauses import PauseTarget
from tasker.services.schedule_firing import ScheduleFiring
from tasker.services.submission.submit import DraftFactory, Submission, SubmissionResult
from tasker.settings.retention import RetentionRule
from tasker.step_handler import step_handler
from tasker.template import compile_text
from tasker.template.plan import Plan
from tests.integration.process.programs import plan, registry, settings
from tests.support.command_line import invoke
from tests.support.engine_fixture import COMPLETE, SHARED

SQL = Path(tasker.__file__).parent / "db" / "sql"
REFUSED = {
    "worker": [
        "insert into tasker.dlq_replays default values",
        "delete from tasker.tasks",
        "create table tasker.mine (id int)",
        "update tasker.schema_scripts set sha256 = ''",
        "truncate tasker.workflow_steps",
    ],
    "orchestrator": [
        "insert into tasker.templates default values",
        "insert into tasker.step_logs default values",
        "drop function tasker.now()",
    ],
    "api": [
        "delete from tasker.tasks",
        "delete from tasker.step_moves",
        "insert into tasker.workers default values",
        "insert into tasker.step_logs default values",
    ],
    "exporter": [
        "select context from tasker.task_details",
        "select result from tasker.step_results",
        "select inputs from tasker.step_inputs",
        "select error from tasker.step_failures",
        "select plan from tasker.templates",
        "select task_snapshot from tasker.tasks_dlq",
        "select * from tasker.poison_messages",
        "update tasker.tasks set priority = 1",
        "select tasker_pgmq.ensure_queue('mine')",
        f"select tasker.submit_v1('{json.dumps(SHARED)}')",
    ],
}
SEEN = (
    *(
        f"select tasker.{name}_v1('{json.dumps(COMPLETE[name])}')"
        for name in ("overview", "scaling", "performance", "bottlenecks")
    ),
    "select * from tasker.v_dlq_dashboard",
    "select * from tasker.get_system_health_counts()",
    "select * from tasker.get_next_ready_tasks(10)",
    "select * from tasker.get_task_execution_contexts_batch(array(select task_uuid from tasker.tasks))",
    "select * from tasker.tasks, lateral tasker.calculate_dependency_levels(task_uuid)",
)


@pytest.fixture
def prefix(database_url: str) -> Iterator[str]:
    """What the names of the roles begin with; they belong to the server, so they go when the test ends."""
    prefix = f"t{uuid4().hex[:12]}"
    with psycopg.connect(database_url, autocommit=True) as admin:
        yield prefix
        for name in [f"{prefix}_{kind}{user}" for user in ("_user", "") for kind in KINDS]:
            if admin.execute("select from pg_roles where rolname = %s", (name,)).fetchone():
                admin.execute(f"drop owned by {name}".encode())
                admin.execute(f"drop role {name}".encode())


@pytest.fixture
def urls(database_url: str, prefix: str) -> dict[str, str]:
    """The database for a user of each role."""
    made = invoke("db", "roles", "--prefix", prefix, "--format", "json", database=database_url)
    again = invoke("db", "roles", "--prefix", prefix, database=database_url)
    assert [(each["name"], each["made"]) for each in json.loads(made.output)] == [
        (f"{prefix}_{k}", True) for k in KINDS
    ]
    assert (again.exit_code, again.output.count("already exists")) == (0, len(KINDS))
    with psycopg.connect(database_url, autocommit=True) as admin:
        for kind in KINDS:
            admin.execute(f"create role {prefix}_{kind}_user login password 'x' in role {prefix}_{kind}".encode())
    return {kind: as_user(database_url, f"{prefix}_{kind}_user") for kind in KINDS}


def as_user(url: str, user: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=f"{user}:x@{parts.netloc.rpartition('@')[2]}").geturl()


async def test_a_task_runs_with_each_process_under_its_role(urls: dict[str, str], database_url: str) -> None:
    async with AsyncExitStack() as stack:
        api = await stack.enter_async_context(tasker.App(urls["api"], work=False, configuration=UNCONFIGURED))
        ours = {kind: prepare(urls[kind]).messaging for kind in ("worker", "orchestrator")}
        for messaging in ours.values():
            await messaging.open()
            stack.push_async_callback(messaging.close)
        orchestrator = orchestrator_process(urls["orchestrator"], ours["orchestrator"])
        worker = worker_process(
            urls["worker"],
            ours["worker"],
            registry(),
            ["ears"],
            settings=settings(DeploymentMode.HYBRID, result_path="queued"),
            consume=False,
        )
        connection = Connection(urls["worker"])
        await PlanStore(connection).register(plan())  # as every worker does with what it finds
        await connection.close()
        for process in (orchestrator, worker):
            await process.start()
            stack.push_async_callback(process.stop)
        (submitted,) = await api.submit_many(plan(), [Submission({})], awaited=True)
        assert isinstance(submitted, SubmissionResult)
        assert (await api.wait(submitted.task_uuid, timeout=60)).status == "complete"

        (other,) = await api.submit_many(build_elsewhere(), [Submission({})])
        assert isinstance(other, SubmissionResult)
        await api.pauses.pause(PauseTarget("elsewhere"), actor="me", reason="a test")
        await api.pauses.resume(PauseTarget("elsewhere"), actor="me")
        await api.tasks.cancel(other.task_uuid)
        assert (await api.tasks.state(other.task_uuid))[0] == "cancelled"

    for kind in ("worker", "orchestrator"):
        async with tasker.App(urls[kind], work=False, configuration=UNCONFIGURED) as app:
            assert not await app.repairs.run()
            assert await app.retention.may_delete() is (kind == "orchestrator")
    with psycopg.connect(urls["exporter"], autocommit=True) as exporter:
        for query in SEEN:
            exporter.execute(query.encode())
    with psycopg.connect(database_url, autocommit=True) as admin:
        admin.execute("update tasker.tasks set completed_at = completed_at - interval '2 days'")
    async with tasker.App(urls["orchestrator"], work=False, configuration=UNCONFIGURED) as app:
        old = await app.retention.prune([RetentionRule(completed_days=1, failed_days=1)])
        assert sum(each.tasks for each in old) == 2


@pytest.mark.parametrize("kind", ["orchestrator", "api"])
async def test_other_roles_match_the_event_of_a_handler_that_waits(urls: dict[str, str], kind: str) -> None:
    @step_handler("waits")
    def waits(context: Any) -> dict[str, Any]:
        if context.event is None:
            context.again_when("paid", timeout="1h", state={"seen": True})
        with context.lock("account"):
            return {"paid": context.event.payload["amount"], **context.state}

    handlers = HandlerRegistry()
    handlers.register("waits", waits)
    (waiting,) = compile_text(
        "name: waits\nnamespace: ears\nversion: 1.0.0\nsteps: [{name: wait, handler: waits}]"
    ).plans
    async with (
        tasker.App(urls["worker"], registry=handlers, configuration=UNCONFIGURED) as worker,
        tasker.App(urls[kind], work=False, configuration=UNCONFIGURED) as other,
    ):
        task = (await worker.submit(waiting, {})).task_uuid
        while (await worker.tasks.report(task)).waiting_for != ["event"]:
            await asyncio.sleep(0.01)
        assert (await other.send_event("ears", "paid", {"amount": 5})).matched == 1
        report = await worker.wait(task, timeout=60)

    assert report.steps["wait"].result == {"paid": 5, "seen": True}


def test_only_the_role_of_orchestrators_prunes_events(urls: dict[str, str]) -> None:
    prune = 'select tasker.prune_events_v1(\'{"older_ms": 0, "limit": 10}\')'
    with psycopg.connect(urls["orchestrator"]) as orchestrator:
        assert orchestrator.execute(prune).fetchone() == ({"over": True, "events": 0},)
    for kind in ("worker", "api"):
        with psycopg.connect(urls[kind]) as other, pytest.raises(psycopg.errors.InsufficientPrivilege):
            other.execute(prune)


@pytest.mark.parametrize("kind", ["worker", "orchestrator", "api"])
async def test_whoever_acts_keeps_what_is_refused_to_them_and_what_they_began(urls: dict[str, str], kind: str) -> None:
    async with tasker.App(urls["api"], work=False, configuration=UNCONFIGURED) as api:
        (task,) = await api.submit_many(plan(), [Submission({})])
        assert isinstance(task, SubmissionResult)
        await api.tasks.cancel(task.task_uuid)
    async with tasker.App(urls[kind], work=False, configuration=UNCONFIGURED) as app:
        with pytest.raises(StateMachineError):
            await app.tasks.cancel(task.task_uuid)
        with pytest.raises(TemplateError):
            await app.template_texts.register("name: nothing")
        kept = await app.operator_log.list(limit=3)
    why = f"task {task.task_uuid} is cancelled and cannot be cancelled"
    assert [(each.endpoint, each.status, each.refusal) for each in reversed(kept)] == [
        ("App.tasks.cancel", 0, None),
        ("App.tasks.cancel", 1, why),
        ("App.template_texts.register", 1, TemplateError.error_type),
    ]


def build_elsewhere() -> Plan:
    """A template whose namespace has no queue yet."""
    return replace(plan(), namespace="elsewhere")


def test_each_role_is_refused_what_is_not_its_work(urls: dict[str, str]) -> None:
    for kind, statements in REFUSED.items():
        with psycopg.connect(urls[kind], autocommit=True) as connection:
            for statement in statements:
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    connection.execute(statement.encode())


def test_rights_that_somebody_added_are_gone_after_the_next_run(
    urls: dict[str, str], database_url: str, prefix: str
) -> None:
    with psycopg.connect(database_url, autocommit=True) as admin:
        admin.execute(f"grant delete on tasker.tasks to {prefix}_worker".encode())
        assert invoke("db", "roles", "--prefix", prefix, database=database_url).exit_code == 0
        query = "select has_table_privilege(%s, 'tasker.tasks', 'delete')"
        assert admin.execute(query, (f"{prefix}_worker",)).fetchone() == (False,)


def test_every_table_is_decided_about(database_url: str) -> None:
    """A new table that nobody may write to would be found by whoever uses roles, not by us."""
    text = (SQL / "roles.sql").read_text("utf-8")
    with psycopg.connect(database_url) as connection:
        tables = connection.execute(
            "select relname from pg_class where relnamespace = 'tasker'::regnamespace and relkind = 'r'"
        )
        assert not [name for (name,) in tables if name != "alembic_version" and f"tasker.{name}" not in text]


def test_who_may_not_make_roles_is_told_what_to_do(urls: dict[str, str], prefix: str) -> None:
    refused = invoke("db", "roles", "--prefix", prefix, database=urls["api"])
    wrong = invoke("db", "roles", "--prefix", "Mine;", database=urls["api"])
    shown = invoke("db", "roles", "--dry-run", database=urls["api"])

    assert (refused.exit_code, "--dry-run" in refused.output) == (1, True)
    assert (wrong.exit_code, "lower-case letters" in wrong.output) == (2, True)
    assert "create role tasker_worker nologin" in shown.output
    assert "on all tables in schema pgmq to tasker_worker, tasker_orchestrator, tasker_api" in shown.output


EACH_SECOND = """
name: tick
namespace: clock
version: 1.0.0
schedules: [{name: each_second, every: 1s, overlap: cancel_running}]
steps: [{name: only, handler: none}]
"""


async def test_an_orchestrator_fires_a_schedule_that_a_worker_declares(urls: dict[str, str]) -> None:
    connections = {kind: Connection(urls[kind]) for kind in ("worker", "orchestrator")}
    messaging = MessagingService(load_backend("pgmq", {}))
    firing = {
        kind: ScheduleFiring(Engine(connection, messaging), PlanStore(connection), DraftFactory(new_task_uuid))
        for kind, connection in connections.items()
    }
    await PlanStore(connections["worker"]).register(compile_text(EACH_SECOND).plans[0])
    ((schedule,),) = await connections["worker"].execute("select schedule_uuid::text from tasker.schedules")

    for moment in ("2099-01-01T00:00:00Z", "2099-01-01T00:00:01Z", "2099-01-01T00:00:02Z"):
        for connection in connections.values():
            await connection.execute("select set_config('tasker.now', %s, false)", (moment,))
        assert await firing["worker"].fire_all([schedule]) is None
        await firing["orchestrator"].fire_all([schedule])

    states = await connections["worker"].execute("select state from tasker.tasks order by task_uuid")
    assert [state for (state,) in states] == ["cancelled", "cancelled", "steps_in_process"]
    for connection in connections.values():
        await connection.close()
