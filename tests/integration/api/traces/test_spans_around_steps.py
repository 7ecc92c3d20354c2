"""The plugin `otel` with `detail = "all"`: spans of what is done around attempts, as the history has it."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from typing import Any

import httpx
import pytest
import pytest_asyncio

import tasker
from tasker.app.configured import UNCONFIGURED
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.plugins.found import PluginChoice
from tasker.server.application import Options, application
from tasker.step_handler import step_handler
from tasker.template import compile_text
from tasker_otel.table import OtelTable
from tests.support.servers.span_receiver import ReceivedSpan, SpanReceiver, receiving
from tests.support.waiting import until

CALLER, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
ORDER = """
name: around
namespace: shop
version: 1.0.0
identity_strategy: always_unique
steps:
  - {name: pay, handler: around.pay, retry: {max_attempts: 3, backoff: fixed, backoff_base_ms: 10}}
  - {name: ship, dependencies: [pay], handler: around.ship}
"""


@step_handler("around.pay")
def pay(context: Any) -> dict[str, Any]:
    if not context.is_retry():
        raise TimeoutError("no answer")
    return {}


@step_handler("around.ship")
async def ship() -> dict[str, Any]:
    return {}


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[SpanReceiver]:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
    with receiving() as found:
        yield found


@pytest_asyncio.fixture(loop_scope="module")
async def app(module_database_url: str, receiver: SpanReceiver) -> AsyncIterator[tasker.App]:
    table = OtelTable(endpoint=receiver.endpoint, detail="all")
    chosen = replace(UNCONFIGURED, plugins=PluginChoice(enabled=("otel",), settings={"otel": table}))
    registry = HandlerRegistry()
    registry.register("around.pay", pay)
    registry.register("around.ship", ship)
    async with tasker.App(module_database_url, registry=registry, configuration=chosen) as running:
        (plan,) = compile_text(ORDER).plans
        await running.plans.register(plan, force=True)
        await running.plan(plan)
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def client(app: tasker.App) -> AsyncIterator[httpx.AsyncClient]:
    options = Options(on_answered=app._plugins.listener("tasker_request_answered"))
    transport = httpx.ASGITransport(app=application(app, options))
    async with httpx.AsyncClient(transport=transport, base_url="http://tasker") as made:
        yield made


def named(spans: Sequence[ReceivedSpan], *names: str) -> list[ReceivedSpan]:
    return sorted((each for each in spans if each.name in names), key=lambda each: each.start)


async def test_what_is_done_around_the_attempts_of_a_task_is_told_in_its_trace(
    app: tasker.App, client: httpx.AsyncClient, receiver: SpanReceiver
) -> None:
    order = {"name": "around", "namespace": "shop"}
    place = {"traceparent": f"00-{CALLER}-{SPAN}-01"}
    task = (await client.post("/v1/tasks", json=order, headers=place)).json()["task_uuid"]
    alone = (await client.post("/v1/tasks", json=order)).json()["task_uuid"]
    kept_out = (await client.post("/v1/tasks", json=order, headers={"traceparent": f"00-{CALLER}-{SPAN}-00"})).json()
    for each in (task, alone, kept_out["task_uuid"]):
        assert (await app.wait(each)).status == "complete"
    history = await app.tasks.history(task)
    await app.stop_working()
    until(lambda: len(receiver.spans) >= 1 + 2 * 11, "all spans arrive", show=lambda: str(receiver.spans))

    spans = [each for each in receiver.spans if each.trace_id == CALLER]
    assert {each.trace_id for each in receiver.spans} == {CALLER, alone.replace("-", "")}
    (request,) = named(receiver.spans, "POST /v1/tasks")
    (whole,) = named(spans, "task_execution")
    assert (request.parent_id, whole.parent_id) == (SPAN, SPAN)
    assert request.attributes == {"http.method": "POST", "http.route": "/v1/tasks", "http.status_code": 201}

    around = named(spans, "create_task", "step_claim", "worker.step_execution", "submit_result")
    assert {each.parent_id for each in around} == {whole.span_id}
    assert {each.attributes["task_uuid"] for each in around} == {task}
    assert len({each.span_id for each in receiver.spans}) == len(receiver.spans)
    assert all(whole.start <= each.start <= each.end for each in around)
    assert_in_order(spans)
    assert_as_in_the_history(spans, history)
    (created,) = named(spans, "create_task")
    assert request.start <= created.start <= created.end <= request.end
    assert created.attributes["task_name"] == "around"


def assert_in_order(spans: Sequence[ReceivedSpan]) -> None:
    """Each attempt is claimed before it begins, and its result brought from its end on."""
    claims, runs, results = (
        {(each.attributes["step_name"], each.attributes["attempt"]): each for each in named(spans, name)}
        for name in ("step_claim", "worker.step_execution", "submit_result")
    )
    assert [*runs] == [("pay", 1), ("pay", 2), ("ship", 1)]
    assert claims.keys() == runs.keys() == results.keys()
    for each, run in runs.items():
        assert claims[each].attributes["step_uuid"] == run.attributes["step_uuid"]
        assert claims[each].end <= run.start
        assert run.end == results[each].start


def assert_as_in_the_history(spans: Sequence[ReceivedSpan], history: Sequence[Any]) -> None:
    """A claim for each time that a step began; a result for each that was taken, and where it led."""
    reached = Counter(each.to_state for each in history if each.step)
    told = Counter(each.attributes["state"] for each in named(spans, "step_claim", "submit_result"))
    assert told == {state: reached[state] for state in ("in_progress", "waiting_for_retry", "complete")}
