"""Steps whose handlers use resources: only a worker that has them runs them, and it is said which one nobody has."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

import tasker
from tasker.app.configured import UNCONFIGURED
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.messaging.listening_modes import DeploymentMode
from tasker.step_handler import step_handler, uses
from tasker.template import compile_text
from tasker.testing.contexts import fake_http
from tests.integration.process.programs import eventually, runtime_of, settings
from tests.integration.process.test_tags import SET_ASIDE, rows
from tests.support.command_line import invoke

TEMPLATE = """
name: mailing
namespace_name: crm
version: "1.0.0"
steps:
  - {name: fetch, HANDLER}
"""


@step_handler("crm.count")
@uses(db="customers")
def count(db: Any) -> dict[str, Any]:
    return {"count": db.count}


class Customers:
    count = 3


ANNOUNCED = "select 1 from tasker.worker_callables where lacking::text like '% {}%'"
CRM = fake_http(lambda request: httpx.Response(200, json={"path": request.url.path}))
CASES = [
    ("handler: crm.count", {"customers": Customers()}, "customers", {"count": 3}),
    (
        "handler: tasker.http, inputs: {resource: crm, path: /c, response: json}",
        {"crm": CRM},
        "crm",
        {"status": 200, "headers": {"content-type": "application/json"}, "json": {"path": "/c"}},
    ),
]


@asynccontextmanager
async def worker(url: str, resources: Mapping[str, Any]) -> AsyncIterator[tasker.App]:
    registry = HandlerRegistry()
    registry.register("crm.count", count)
    options: dict[str, Any] = {"settings": settings(DeploymentMode.HYBRID), "configuration": UNCONFIGURED}
    async with tasker.App(url, registry=registry, resources=resources, **options) as app:
        await runtime_of(app).serve("crm")
        yield app


@pytest.mark.parametrize(("handler", "resources", "name", "result"), CASES, ids=["function", "tasker.http"])
async def test_a_step_waits_for_a_worker_with_its_resource(
    database_url: str, handler: str, resources: Mapping[str, Any], name: str, result: Mapping[str, Any]
) -> None:
    (plan,) = compile_text(TEMPLATE.replace("HANDLER", handler)).plans
    async with tasker.App(database_url, work=False, configuration=UNCONFIGURED) as client, worker(database_url, {}):
        task = (await client.submit(plan, {})).task_uuid
        await eventually(lambda: bool(rows(database_url, SET_ASIDE)), "the step is set aside")
        await eventually(lambda: bool(rows(database_url, ANNOUNCED.format(name))), "what it lacks is announced")
        await eventually(lambda: bool(rows(database_url, SET_ASIDE)), "the registration has tried it once more")
        explained = await asyncio.to_thread(invoke, "task", "explain", task, database=database_url)
        assert f"(missing resource: {name}): refused by" in " ".join(explained.stdout.split())

        async with worker(database_url, resources):
            done = "select 1 from tasker.tasks where state = 'complete'"
            await eventually(lambda: bool(rows(database_url, done)), "the task is complete")
        report = await client.tasks.report(task)
    assert (report.steps["fetch"].result, report.steps["fetch"].attempts) == (result, 1)
