"""Steps that require tags: only a worker that has them runs them, and it is said which tag nobody has."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import psycopg

import tasker
from tasker.app.configured import UNCONFIGURED
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.messaging.listening_modes import DeploymentMode
from tasker.template import compile_text
from tests.integration.process.programs import eventually, runtime_of, settings
from tests.support.command_line import invoke

TEMPLATE = """
name: training
namespace_name: ml
version: "1.0.0"
steps:
  - {name: load, handler: ml.work}
  - {name: train, handler: ml.work, dependencies: [load], requires: [gpu, large]}
"""


SET_ASIDE = "select 1 from tasker.ready_backlog where unserved is not null"


def rows(url: str, query: str) -> list[Any]:
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(query.encode()).fetchall()


@asynccontextmanager
async def worker(url: str, *tags: str) -> AsyncIterator[tasker.App]:
    async def work(context: Any) -> dict[str, Any]:
        return {"by": runtime_of(app).worker.identity}

    registry = HandlerRegistry()
    registry.register("ml.work", work)
    chosen = replace(settings(DeploymentMode.HYBRID), tags=frozenset(tags))
    async with tasker.App(url, registry=registry, settings=chosen, configuration=UNCONFIGURED) as app:
        await runtime_of(app).serve("ml")
        yield app


async def test_a_step_waits_for_a_worker_with_its_tags_and_wakes_when_it_comes(database_url: str) -> None:
    (plan,) = compile_text(TEMPLATE).plans
    async with worker(database_url, "gpu") as small:
        task = (await small.submit(plan, {})).task_uuid
        await eventually(lambda: bool(rows(database_url, SET_ASIDE)), "the step is set aside")

        explained = await asyncio.to_thread(invoke, "task", "explain", task, database=database_url)
        assert "no live worker of the namespace ml has the tag large" in explained.stdout
        assert "--tags large" in explained.stdout
        shown = await asyncio.to_thread(invoke, "task", "list", database=database_url)
        assert "no live worker has handler ml.work with the tags gpu, large" in " ".join(shown.stdout.split())
        doctor = await asyncio.to_thread(invoke, "doctor", database=database_url)
        assert "no worker of ml has the tag large: 1 steps wait" in doctor.stdout
        listed = await asyncio.to_thread(invoke, "worker", "list", "--callables", database=database_url)
        assert "tags: gpu" in listed.stdout

        async with worker(database_url, "gpu", "large", "fast") as big:
            done = "select 1 from tasker.tasks where state = 'complete'"
            await eventually(lambda: bool(rows(database_url, done)), "the task is complete")
            report = await small.tasks.report(task)
            assert report.steps["train"].result == {"by": runtime_of(big).worker.identity}
    assert report.steps["train"].attempts == 1
