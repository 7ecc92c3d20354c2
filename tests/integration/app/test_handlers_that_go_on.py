"""Handlers that wait for an event without a worker and go on with it (`again_when`)."""

from __future__ import annotations

from datetime import UTC
from typing import Any

import pytest

import tasker
from tasker.errors import ValidationError
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.step_handler import StepHandler, again_when, step_handler
from tasker.template import compile_text
from tasker.template.plan import Plan
from tests.support.waiting import until

TEMPLATE = """
name: payment
namespace: going_on
version: 1.0.0
steps:
  - {name: charge, handler: charge, retry: {max_attempts: 1}, execution: {mode: MODE}}
  - {name: ship, handler: ship, dependencies: [charge]}
"""


def plan_of(mode: str = "thread") -> Plan:
    (plan,) = compile_text(TEMPLATE.replace("MODE", mode)).plans
    return plan


@step_handler("ship")
def ship(context: Any) -> dict[str, Any]:
    return {"shipped": context.get_dependency_result("charge")}


def charge(context: Any) -> dict[str, Any]:
    """Starts a charge and goes on with the event of the provider."""
    if context.timed_out:
        return {"gave_up": context.state["session"], "event": context.event}
    if context.event is None:
        order = context.get_input("order")
        on_timeout, timeout = context.get_input_or("on_timeout", "fail"), context.get_input_or("timeout", "2h")
        context.again_when(
            "payment.settled",
            key=order,
            timeout=timeout,
            on_timeout=on_timeout,
            state={"session": f"S-{order}"},
            schema={"type": "object", "required": ["amount"]},
        )
    payload = context.event.payload
    return {"session": context.state["session"], "amount": payload["amount"], "key": context.event.key}


async def charge_async(context: Any) -> dict[str, Any]:
    return charge(context)


class Charge(StepHandler):
    handler_name = "charge"

    def call(self, context: Any) -> Any:
        if context.event is None:
            return self.again_when("payment.settled", key=context.get_input("order"), timeout="never")
        return self.success({"amount": context.event.payload["amount"]})


def registry_of(handler: Any) -> HandlerRegistry:
    registry = HandlerRegistry()
    registry.register("charge", handler if isinstance(handler, type) else step_handler("charge")(handler))
    registry.register("ship", ship)
    return registry


def suspended(app: tasker.SyncApp, plan: Plan, order: str, **more: Any) -> str:
    task = app.submit(plan, {"order": order, **more}).task_uuid
    until(lambda: app.tasks.report(task).waiting_for == ["event"], "its handler waits")
    return task


@pytest.mark.parametrize(
    ("mode", "handler"), [("thread", charge), ("async", charge_async), ("process", charge), ("thread", Charge)]
)
def test_handler_goes_on_with_the_event(database_url: str, mode: str, handler: Any) -> None:
    with tasker.SyncApp(database_url, registry=registry_of(handler)) as app:
        task = suspended(app, plan_of(mode), "7")
        waiting = app.tasks.report(task).steps["charge"]
        if handler is not Charge:
            refused = app.send_event("going_on", "payment.settled", {"total": 1}, key="7")
            assert (refused.matched, refused.refused) == (0, 1), "its payload does not fit the schema"
        app.send_event("going_on", "payment.settled", {"amount": 12}, key="7")
        outcome = app.wait(task, timeout=60)
        step = outcome.steps["charge"]

    assert outcome.status == "complete"
    assert outcome.steps["charge"].result["amount"] == 12
    assert (waiting.state, waiting.attempts, step.attempts) == ("in_progress", 1, 1)


def test_wait_that_times_out_fails_or_calls_the_handler(database_url: str) -> None:
    with tasker.SyncApp(database_url, registry=registry_of(charge)) as app:
        late = [
            app.submit(plan_of(), {"order": "7", "timeout": 0.05, "on_timeout": word}).task_uuid
            for word in ("fail", "continue")
        ]
        failed, continued = (app.wait(task, timeout=60) for task in late)

    assert failed.status == "error"
    assert failed.steps["charge"].error["type"] == "wait_timed_out"
    assert continued.steps["charge"].result == {"gave_up": "S-7", "event": None}


def test_failed_wait_with_a_branch_goes_the_branch(database_url: str) -> None:
    text = TEMPLATE.replace("MODE", "thread").replace("retry: {", "on_failure: continue, retry: {")
    (plan,) = compile_text(text.replace("name: payment", "name: tolerant")).plans
    with tasker.SyncApp(database_url, registry=registry_of(charge)) as app:
        report = app.run(plan, {"order": "7", "timeout": 0.05}, timeout=60)

    assert (report.status, report.outcome) == ("complete", "partial")


def test_wait_of_a_handler_is_explained(database_url: str) -> None:
    with tasker.SyncApp(database_url, registry=registry_of(charge)) as app:
        task = suspended(app, plan_of(), "7")
        app.send_event("going_on", "payment.settled", {"total": 1}, key="7")
        (reason,) = [each for each in app.tasks.explain(task).reasons if each.reason == "waits_event"]
        listed = app.tasks.list(waiting_for="event")

    sentence = reason.sentence(UTC)
    assert sentence.startswith("waits for the event payment.settled with the key 7 until ")
    assert "; the payloads of 1 did not fit, the last because $.amount: is required and missing" in sentence
    assert [row.task_uuid for row in listed] == [task]


@pytest.mark.parametrize(
    ("wait", "message"),
    [
        ({"event": "no spaces"}, "event: expected a name such as payment.settled, got 'no spaces'"),
        ({"key": "k" * 201}, "key: expected text of at most 200 characters, got 'kkk"),
        ({"timeout": "soon"}, "timeout: expected a duration such as 90s"),
        ({"timeout": 0}, "timeout: expected a duration above 0s, or `never`"),
        ({"on_timeout": "skip"}, "on_timeout: expected 'fail' or 'continue', got 'skip'"),
        ({"state": [1]}, "state: expected keys and values, got [1]"),
        ({"schema": {"type": "number of sorts"}}, "schema.type: not a JSON Schema: "),
    ],
)
def test_invalid_wait_is_refused_with_what_was_expected(wait: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        again_when(**{"event": "paid", "timeout": "2h", **wait})

    assert message in str(caught.value)


def test_state_that_is_no_json_fails_the_step(database_url: str) -> None:
    def stores(context: Any) -> None:
        context.again_when("paid", timeout="2h", state={"at": object()})

    with tasker.SyncApp(database_url, registry=registry_of(stores)) as app:
        report = app.run(plan_of(), {"order": "7"}, timeout=60)

    error = report.steps["charge"].error
    assert error["type"] == "not_storable", error
