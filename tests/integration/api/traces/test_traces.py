"""A trace that a task is submitted in reaches its handlers, and what they call."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
import pytest_asyncio

import tasker
from tasker.errors import UsageError
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.step_handler import ApiHandler
from tasker.template import compile_text
from tasker.types import StepContext, StepHandlerResult
from tests.integration.api.program import registered

TRACED = """
name: traced
namespace: shop
version: 1.0.0
identity_strategy: always_unique
steps:
  - {name: ask, handler: shop.ask}
  - {name: ask_again, dependencies: [ask], handler: shop.ask}
"""
GIVEN = {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "tracestate": "vendor=1"}
OTHER = {**GIVEN, "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b8-00"}


class Ask(ApiHandler):
    """Asks a service, which answers with the headers that it got."""

    def configure_session(self, session: Any) -> None:
        session._transport = httpx.MockTransport(_echo)

    def call(self, context: StepContext) -> StepHandlerResult:
        own = self.get("http://service/", headers={"traceparent": "own"}).json()
        got = self.get("http://service/").json()
        return StepHandlerResult.success({"given": context.trace_headers, "got": got, "own": own})


def _echo(request: httpx.Request) -> httpx.Response:
    return httpx.Response(200, json={name: request.headers[name] for name in GIVEN if name in request.headers})


@pytest.fixture(scope="module")
def registry() -> HandlerRegistry:
    registry = registered()
    registry.register("shop.ask", Ask)
    return registry


@pytest_asyncio.fixture(loop_scope="module")
async def plan(app: tasker.App) -> Any:
    (plan,) = compile_text(TRACED).plans
    await app.plans.register(plan, force=True)
    return await app.plan(plan)


async def results(app: tasker.App, task: str) -> list[Any]:
    return list((await app.wait(task)).results.values())


async def test_a_trace_reaches_handlers_and_what_they_call(
    app: tasker.App, client: httpx.AsyncClient, plan: Any
) -> None:
    order = {"name": "traced", "namespace": "shop"}
    one = (await client.post("/v1/tasks", json=order, headers=GIVEN)).json()["task_uuid"]
    batch = await client.post("/v1/tasks/batch", json={"tasks": [order, order]}, headers=OTHER)
    nonsense = (await client.post("/v1/tasks", json=order, headers={"traceparent": "nonsense"})).json()["task_uuid"]
    by_program = (await app.submit(plan, {}, **GIVEN)).task_uuid

    carried = {"given": GIVEN, "got": GIVEN, "own": {"traceparent": "own"}}
    assert await results(app, one) == await results(app, by_program) == [carried, carried]
    for each in batch.json()["results"]:
        assert [found["got"] for found in await results(app, each["task_uuid"])] == [OTHER, OTHER]
    assert [found["got"] for found in await results(app, nonsense)] == [{}, {}]


async def test_what_a_program_gives_wrong_is_told(app: tasker.App, plan: Any) -> None:
    with pytest.raises(UsageError, match="traceparent: expected 00-, the trace"):
        await app.submit(plan, {}, traceparent="nonsense")
