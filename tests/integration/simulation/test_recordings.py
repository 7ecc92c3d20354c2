"""A recorded case does on the simulator what its task did on the engine; sensitive values never leave."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tasker
from tasker.errors import PermanentError, RetryableError, UsageError
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.simulation.recording import Recording, record
from tasker.simulation.scenarios import Case, cases_of
from tasker.simulation.simulate import simulate
from tasker.simulation.substitutes import Substitutes
from tasker.step_handler import StepHandler, again_in
from tasker.template import compile_text
from tasker.template.plan import Plan, RetryPolicy
from tasker.types import StepContext
from tasker.views.tasks import TaskReport
from tests.support.random_plans import scenarios

CASES = count(1)
WORKFLOWS = Path(__file__).parents[3] / "workflows"


class Scripted(StepHandler):
    """Does what the test says that the step does: calls by step, of which the last one repeats."""

    handler_name = "noop"
    calls: ClassVar[dict[str, list[Any]]] = {}
    counts: ClassVar[dict[str, int]] = {}

    async def call(self, context: StepContext) -> Any:
        assert context._claim is not None
        assert context._step is not None
        name = context._claim.name
        calls = self.calls.get(name, self.calls.get(context._step.name, [{}]))
        made = self.counts[name] = self.counts.get(name, 0) + 1
        call = calls[min(made, len(calls)) - 1]
        if callable(call):
            call()
        if isinstance(call, Exception):
            raise call
        return self.success(call)


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def app(loop: asyncio.Runner, module_database_url: str) -> Iterator[tasker.App]:
    registry = HandlerRegistry()
    registry.register("noop", Scripted)
    app = tasker.App(module_database_url, registry=registry)
    loop.run(app.start())
    yield app
    loop.run(app.stop())


async def ran(app: tasker.App, plan: Plan, values: dict[str, Any], calls: dict[str, list[Any]]) -> TaskReport:
    Scripted.calls, Scripted.counts = calls, {}
    return await app.run(plan, values, timeout=60)


async def recorded(app: tasker.App, task: str, **options: Any) -> Recording:
    report, history = await app.tasks.report(task), await app.tasks.history(task)
    return record(await app.pinned_plan(task), report, history, **options)


def case_of(recording: Recording) -> Case:
    (case,) = cases_of(yaml.safe_load(recording.text), Path("case.scenario.yaml"))
    return case


def compiled(text: str) -> Plan:
    (plan,) = compile_text(text).plans
    return replace(plan, name=f"{plan.name}_{next(CASES)}")


STEP = "retry: {max_attempts: 3, backoff_base_ms: 1}"
ORDERS = f"""
name: orders
namespace: recordings
version: 1.0.0
input_schema:
  type: object
  required: [amount]
  properties:
    amount: {{type: number}}
    card: {{type: string, x-sensitive: true, pattern: '^[0-9]{{4}}-[0-9]{{4}}$'}}
    tier: {{enum: [gold, silver], x-sensitive: true}}
steps:
  - {{name: validate, handler: noop, {STEP}}}
  - name: charge
    dependencies: [validate]
    handler: noop
    retry: {{max_attempts: 3, backoff_base_ms: 1}}
    result_schema:
      type: object
      required: [total]
      properties: {{total: {{type: number}}, receipt: {{type: string, x-sensitive: true, minLength: 4}}}}
  - name: route
    type: decision
    dependencies: [charge]
    rules: [{{when: "steps.charge.total > 100", then: [review]}}, {{else: [ship]}}]
  - {{name: review, dependencies: [route], handler: noop}}
  - name: ship
    dependencies: [route]
    handler: tasker.transform
    inputs: {{carrier: "${{input.amount > 5 ? 'DHL' : 'letter'}}"}}
"""
CARD, RECEIPT = "4000-1234", "R-77123"


def test_failed_task_is_recorded_with_each_call(loop: asyncio.Runner, app: tasker.App) -> None:
    calls = {
        "validate": [RetryableError("busy"), {"ok": True}],
        "charge": [PermanentError("declined", error_code="D1")],
    }
    report = loop.run(ran(app, compiled(ORDERS), {"amount": 7}, calls))
    case = case_of(loop.run(recorded(app, report.task_uuid)))
    assert case.expect == {
        "status": "error",
        "route": ["validate", "charge"],
        "attempts": {"validate": 2},
        "failures": {"charge": "permanent_error"},
    }
    busy, ok = case.mocks["validate"].calls
    assert busy.failure is not None
    assert (busy.failure.message, ok.result) == ("busy", {"ok": True})
    (declined,) = case.mocks["charge"].calls
    assert declined.failure is not None
    assert (declined.failure.error_code, declined.failure.retryable) == ("D1", False)


def test_sensitive_values_are_replaced_wherever_they_are_and_equal_ones_alike(
    loop: asyncio.Runner, app: tasker.App
) -> None:
    calls = {
        "validate": [RetryableError(f"cannot read {CARD}"), {"seen": f"card {CARD}"}],
        "charge": [{"total": 10, "receipt": RECEIPT, "note": f"{RECEIPT} for {CARD}"}],
    }
    report = loop.run(ran(app, compiled(ORDERS), {"amount": 7, "card": CARD}, calls))
    recording = loop.run(recorded(app, report.task_uuid))
    assert not [secret for secret in (CARD, RECEIPT) if secret in recording.text]
    assert recording.replaced == ("input.card", "steps.charge.receipt")
    case = case_of(recording)
    card, charged = case.values["card"], case.mocks["charge"].calls[0].result
    assert (len(card), card[4]) == (9, "-")
    assert case.mocks["validate"].calls[1].result == {"seen": f"card {card}"}
    assert charged["note"] == f"{charged['receipt']} for {card}"


def test_kept_value_is_written_as_it_was(loop: asyncio.Runner, app: tasker.App) -> None:
    report = loop.run(ran(app, compiled(ORDERS), {"amount": 1, "card": CARD}, {"charge": [{"total": 1}]}))
    assert case_of(loop.run(recorded(app, report.task_uuid, keep=["input.card"]))).values["card"] == CARD


def test_recording_is_refused_and_names_the_sensitive_value_that_decides(loop: asyncio.Runner, app: tasker.App) -> None:
    plan = compiled(ORDERS.replace("steps.charge.total > 100", "input.?tier.orValue('') == 'gold'"))
    report = loop.run(ran(app, plan, {"amount": 1, "tier": "gold"}, {"charge": [{"total": 1}]}))
    with pytest.raises(UsageError, match="the simulated run differs: review was not created") as refused:
        loop.run(recorded(app, report.task_uuid))
    assert "--keep 'input.tier'" in (refused.value.hint or "")
    assert "review" in case_of(loop.run(recorded(app, report.task_uuid, keep=["input.tier"]))).expect["route"]


def test_long_results_are_cut_to_what_the_template_reads(loop: asyncio.Runner, app: tasker.App) -> None:
    charged = {"total": 10, "log": "x" * 5000}
    report = loop.run(ran(app, compiled(ORDERS), {"amount": 7}, {"charge": [charged]}))
    short = loop.run(recorded(app, report.task_uuid))
    assert short.cut == ("charge",)
    assert case_of(short).mocks["charge"].calls[0].result == {"total": 10}
    assert case_of(loop.run(recorded(app, report.task_uuid, full=True))).mocks["charge"].calls[0].result == charged


def test_requests_to_be_called_again_are_recorded(loop: asyncio.Runner, app: tasker.App) -> None:
    def again() -> None:
        again_in(0.01)

    report = loop.run(ran(app, compiled(ORDERS), {"amount": 7}, {"charge": [again, again, {"total": 1}]}))
    calls = case_of(loop.run(recorded(app, report.task_uuid))).mocks["charge"].calls
    assert [call.again_ms is not None for call in calls] == [True, True, False]


def test_open_task_is_recorded_as_far_as_it_is(loop: asyncio.Runner, app: tasker.App) -> None:
    plan = compiled(ORDERS.replace("name: charge\n", "name: charge\n    delay: 1h\n"))

    async def open_task() -> Recording:
        Scripted.calls, Scripted.counts = {"validate": [{"ok": 1}]}, {}
        task = (await app.submit(plan, {"amount": 1})).task_uuid
        while (await app.tasks.report(task)).steps["validate"].state != "complete":
            await asyncio.sleep(0.01)
        return await recorded(app, task)

    recording = loop.run(open_task())
    assert "the task was open" in " ".join(recording.notes)
    assert case_of(recording).expect == {"attempts": {"validate": 1}}


def test_reset_step_is_recorded_from_then_on(loop: asyncio.Runner, app: tasker.App) -> None:
    async def repaired() -> str:
        report = await ran(app, compiled(ORDERS), {"amount": 1}, {"charge": [PermanentError("no"), {"total": 1}]})
        await app.steps.retry(report.task_uuid, actor="operator", reason="")
        await app.wait(report.task_uuid, timeout=60)
        return report.task_uuid

    recording = loop.run(recorded(app, loop.run(repaired())))
    assert recording.notes == ("an operator reset charge",)
    assert len(case_of(recording).mocks["charge"].calls) == 1


def test_cancelled_task_is_refused(loop: asyncio.Runner, app: tasker.App) -> None:
    async def cancelled() -> str:
        plan = compiled(ORDERS.replace("name: validate,", "name: validate, delay: 1h,"))
        task = (await app.submit(plan, {"amount": 1})).task_uuid
        await app.tasks.cancel(task)
        return task

    with pytest.raises(UsageError, match="was cancelled"):
        loop.run(recorded(app, loop.run(cancelled())))


ITEMS = """
name: items
namespace: recordings
version: 1.0.0
steps:
  - name: each
    handler: noop
    retry: {max_attempts: 1}
    for_each: {in: input.rows, as: row, on_error: collect, batch_size: 2}
    inputs: {row: "${row}"}
"""


def test_items_are_recorded_with_those_that_failed(loop: asyncio.Runner, app: tasker.App) -> None:
    calls = {"each_001": [{"n": 1}, PermanentError("bad row")], "each_002": [{"n": 3}]}
    report = loop.run(ran(app, compiled(ITEMS), {"rows": [1, 2, 3]}, calls))
    case = case_of(loop.run(recorded(app, report.task_uuid)))
    first, second = case.mocks["each_001"].calls[0].items
    assert second.failure is not None
    assert (first.result, second.failure.message) == ({"n": 1}, "bad row")


def test_compensated_tasks_and_parents_are_recorded(module_database_url: str) -> None:
    with tasker.SyncApp(module_database_url, environment="test") as engine:
        for example, values, route in (
            ("order_saga", {"trip": "T", "customer": "C", "full": ["car"]}, ["hotel.undo", "flight.undo", "report"]),
            ("video_batch", {"catalog": "spring"}, ["list_videos", "videos", "report"]),
        ):
            task = engine.run(WORKFLOWS / example, values, timeout=60).task_uuid
            made = record(engine.pinned_plan(task), engine.tasks.report(task), engine.tasks.history(task))
            assert case_of(made).expect["route"][-len(route) :] == route


def test_thousands_of_sensitive_texts_are_replaced_also_in_keys() -> None:
    schema = {"type": "array", "items": {"type": "string", "x-sensitive": True}}
    secrets = [f"secret-{number}" for number in range(3_000)]
    substitutes = Substitutes()
    substitutes.collect(secrets, schema, "input")
    substitutes.choose()
    text = " and ".join(secrets)
    ((key, value),) = substitutes.in_texts({"of secret-2999": text}).items()
    assert "secret-" not in key + value
    assert key == f"of {substitutes.replaced(secrets, schema, 'input')[2999]}"


@st.composite
def failing(draw: st.DrawFn) -> tuple[Plan, dict[str, list[Any]]]:
    """A random graph with failure words, and calls of its steps: failures, then their results."""
    scenario, attempts = draw(scenarios(max_steps=10)), draw(st.integers(1, 3))
    policy = RetryPolicy(backoff="none", backoff_base_ms=0, max_attempts=attempts)
    words = st.sampled_from(("fail_task", "fail_task", "continue", "skip_cascade", "optional"))
    steps = tuple(replace(step, retry=policy, on_failure=draw(words)) for step in scenario.plan.steps)
    calls: dict[str, list[Any]] = {}
    for name in draw(st.sets(st.sampled_from([step.name for step in steps]), min_size=1, max_size=3)):
        error = draw(st.sampled_from((RetryableError("busy"), PermanentError("bad", error_code="B1"))))
        calls[name] = [error] * draw(st.integers(1, 3))
    results = {step.name: scenario.results.get(step.name, {"value": step.name}) for step in steps}
    plan = replace(scenario.plan, steps=steps, name=f"recorded_{next(CASES)}")
    return plan, {name: [*calls.get(name, ()), result] for name, result in results.items()}


def fails_the_same_way(loop: asyncio.Runner, app: tasker.App, plan: Plan, calls: dict[str, list[Any]]) -> None:
    report = loop.run(ran(app, plan, {}, calls))
    case = case_of(loop.run(recorded(app, report.task_uuid)))
    run = simulate(plan, case.values, case.mocks, at=case.at)
    assert case.differences(run) == []
    assert (run.status, run.outcome) == (report.status, report.outcome)
    errors = {name: (step.error or {}).get("type") for name, step in report.steps.items() if step.state == "error"}
    assert {name: step.error_type for name, step in run.steps.items() if step.state == "error"} == errors


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=failing())
def test_random_failed_runs_are_recorded_and_fail_the_same_way(
    loop: asyncio.Runner, app: tasker.App, case: tuple[Plan, dict[str, list[Any]]]
) -> None:
    fails_the_same_way(loop, app, *case)


@pytest.mark.long
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=failing())
def test_two_hundred_random_failed_runs_are_recorded_and_fail_the_same_way(
    loop: asyncio.Runner, app: tasker.App, case: tuple[Plan, dict[str, list[Any]]]
) -> None:
    fails_the_same_way(loop, app, *case)
