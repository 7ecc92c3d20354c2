"""Urgent tasks are the next that a worker takes, on every backend."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

import tasker
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.services.submission.submit import Submission
from tasker.step_handler import inputs, step_handler
from tests.support.servers import brokers
from tests.support.worker_settings import worker_settings

TEMPLATE = """
name: urgent
namespace: {namespace}
version: 1.0.0
identity_strategy: always_unique
{priority}
steps:
  - {{name: note, handler: priority.note}}
"""
noted: list[str] = []
opened: list[bool] = []
"""Not empty when handlers may end."""


@step_handler("priority.note")
@inputs("n")
async def note(n: str) -> dict[str, str]:
    noted.append(n)
    while not opened:
        await asyncio.sleep(0.01)
    return {"n": n}


@pytest_asyncio.fixture(params=[brokers.on(name) for name in brokers.ENGINE_BACKENDS])
async def app(request: pytest.FixtureRequest, database_url: str) -> AsyncIterator[tasker.App]:
    settings = brokers.engine_settings(request.param)
    noted.clear()
    opened.clear()
    registry = HandlerRegistry()
    registry.register("priority.note", note)
    async with tasker.App(
        database_url,
        registry=registry,
        settings=worker_settings(concurrency=1),
        backend=request.param,
        backend_settings=settings,
    ) as running:
        yield running
        await running.stop_working()
        await brokers.remove_queues(running._resources.messaging, settings)


def written(folder: Path, namespace: str, priority: str = "") -> Path:
    path = folder / f"{namespace}.yaml"
    path.write_text(TEMPLATE.format(namespace=namespace, priority=priority))
    return path


async def finished(app: tasker.App, number: int) -> list[str]:
    """Which tasks ran, in their order, when so many have."""
    opened.append(True)
    async with asyncio.timeout(60):
        while len(noted) < number:
            await asyncio.sleep(0.01)
    return noted


async def begun() -> None:
    async with asyncio.timeout(30):
        while not noted:
            await asyncio.sleep(0.01)


async def test_the_urgent_task_submitted_last_of_201_is_the_next_to_run(app: tasker.App, tmp_path: Path) -> None:
    template = written(tmp_path, "priority")
    await app.submit(template, {"n": "first"})
    await begun()
    await app.submit_many(template, [Submission({"n": str(n)}) for n in range(199)])
    await app.submit(template, {"n": "urgent"}, priority="critical")

    assert (await finished(app, 201))[1] == "urgent"
    assert len(set(noted)) == 201


@pytest.mark.parametrize("app", ["pgmq"], indirect=True)
async def test_a_template_has_a_priority_for_its_tasks(app: tasker.App, tmp_path: Path) -> None:
    bulk = written(tmp_path, "priority", "priority: bulk")
    await app.submit(bulk, {"n": "first"})
    await begun()
    for n in ("bulk", "high", "normal"):
        await app.submit(bulk, {"n": n}, **({} if n == "bulk" else {"priority": n}))

    assert (await finished(app, 4))[1:] == ["high", "normal", "bulk"]
