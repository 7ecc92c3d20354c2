"""A worker whose ways to learn of work are under test, and a program beside it that only submits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import psycopg

import tasker
from tasker.app.configured import UNCONFIGURED
from tasker.execution.settings import WorkerSettings
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.messaging.listening_modes import DeploymentMode, EventSettings
from tasker.process.event_system import EventSystem
from tasker.process.runtime import Runtime
from tasker.services.submission.submit import Submission, SubmissionResult
from tasker.settings.listening import Listener
from tasker.template import compile_text
from tasker.template.plan import Plan
from tests.support.worker_settings import worker_settings

QUICK = EventSettings(
    poll_ms=200,
    lost_poll_ms=50,
    listener=Listener(connection_timeout_seconds=10, retry_interval_seconds=0.1),  # type: ignore[arg-type]
    health_check_interval_seconds=0.05,
)
NEVER_MS = 3_600_000
"""A poll so late that no test sees it."""

TEMPLATE = """
name: two_steps
namespace_name: ears
version: "1.0.0"
steps:
  - {name: first, handler: ears.work}
  - {name: second, handler: ears.work, dependencies: [first]}
"""


def plan() -> Plan:
    (compiled,) = compile_text(TEMPLATE).plans
    return compiled


def registry() -> HandlerRegistry:
    async def work(context: Any) -> dict[str, Any]:
        return {"done": True}

    found = HandlerRegistry()
    found.register("ears.work", work)
    return found


def settings(mode: DeploymentMode, events: EventSettings = QUICK, **changes: Any) -> WorkerSettings:
    return worker_settings(events=replace(events, deployment_mode=mode), **changes)


@asynccontextmanager
async def working(url: str, chosen: WorkerSettings, **options: Any) -> AsyncIterator[tasker.App]:
    """An app that works on the namespace already, so that everything later must be announced to it."""
    async with tasker.App(url, registry=registry(), settings=chosen, configuration=UNCONFIGURED, **options) as app:
        await runtime_of(app).serve("ears")
        yield app


@asynccontextmanager
async def submitting(url: str, **options: Any) -> AsyncIterator[tasker.App]:
    async with tasker.App(url, registry=registry(), work=False, **options) as app:
        yield app


def runtime_of(app: tasker.App) -> Runtime:
    assert app.runtime is not None
    return app.runtime


def events_of(app: tasker.App) -> EventSystem:
    return runtime_of(app).events


async def runs(app: tasker.App, tasks: int = 1) -> None:
    """Submit as to a fleet, so that steps go through the queue, and see each task end well."""
    keys = [f"{id(app)}-{asyncio.get_running_loop().time()}-{number}" for number in range(tasks)]
    submitted = await app.submit_many(plan(), [Submission({}, idempotency_key=key) for key in keys])
    for each in submitted:
        assert isinstance(each, SubmissionResult)
        report = await app.wait(each.task_uuid, timeout=60)
        assert report.status == "complete"


async def eventually(holds: Callable[[], bool], what: str, seconds: float = 60) -> None:
    """Let the event loop run until it holds."""
    try:
        async with asyncio.timeout(seconds):
            while not holds():
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"waited {seconds:g} s in vain until {what}") from None


def listening(url: str, name: str = "tasker listen") -> list[int]:
    """The server's processes that listen for a process of ours on this database; or for a program that waits."""
    with psycopg.connect(url, autocommit=True) as admin:
        rows = admin.execute(
            "select pid from pg_stat_activity where datname = current_database() and application_name = %s", (name,)
        )
        return [row[0] for row in rows]


def cut(url: str, name: str = "tasker listen") -> None:
    """End every listening connection, as a network or a fail-over would."""
    with psycopg.connect(url, autocommit=True) as admin:
        for pid in listening(url, name):
            admin.execute("select pg_terminate_backend(%s)", (pid,))
