"""The bridge delivers events to listeners, and a subscriber runs the steps that arrive as events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tasker.handlers.registry.registry import HandlerRegistry
from tasker.step_handler import checkpoint_yield, step_handler
from tasker.types import StepContext
from tasker_core import EventBridge, EventNames, StepExecutionResult, StepExecutionSubscriber
from tasker_core.types.context import event_of
from tests.unit.handlers.support import context


@pytest.fixture
def bridge() -> Iterator[EventBridge]:
    made = EventBridge()
    made.start()
    yield made
    made.stop()


def test_a_listener_that_raises_does_not_stop_the_others(bridge: EventBridge, caplog: pytest.LogCaptureFixture) -> None:
    heard: list[int] = []
    bridge.subscribe("e", lambda value: 1 / 0)
    bridge.subscribe("e", heard.append)
    bridge.subscribe_once("e", heard.append)
    bridge.publish("e", 1)
    bridge.publish("e", 2)
    assert heard == [1, 1, 2]
    assert "a listener of e failed" in caplog.text


def test_nothing_is_delivered_outside_start_and_stop() -> None:
    heard: list[int] = []
    bridge = EventBridge()
    bridge.subscribe("e", heard.append)
    bridge.publish("e", 1)
    bridge.start()
    bridge.unsubscribe("e", heard.append)
    bridge.publish("e", 2)
    bridge.stop()
    assert (heard, bridge.is_active, bridge.listener_count("e")) == ([], False, 0)


def test_registrations_are_published(bridge: EventBridge) -> None:
    heard: list[tuple[str, Any]] = []
    bridge.subscribe(EventNames.HANDLER_REGISTERED, lambda *args: heard.append(args))
    registry = HandlerRegistry()
    registry.register("a", int)
    bridge.stop()
    registry.register("b", int)
    assert heard == [("a", int)]


def test_the_shared_bridge_stops_when_it_is_reset() -> None:
    bridge = EventBridge.instance()
    bridge.start()
    EventBridge.reset_instance()
    assert bridge.is_active is False
    assert EventBridge.instance() is not bridge
    assert set(bridge.event_schema) == {v for k, v in vars(EventNames).items() if k.isupper()}


@step_handler("charge")
def charge(context: StepContext) -> Any:
    if context.get_input("yield"):
        checkpoint_yield(5, 5)
    if context.get_input("fail"):
        raise ValueError("card")
    return {"charged": context.get_input("amount")}


@step_handler("charge")
async def charge_later() -> Any:
    return {"charged": "later"}


def completed(bridge: EventBridge, handler: Any, made: StepContext) -> list[Any]:
    registry = HandlerRegistry()
    if handler:
        registry.register("charge", handler)
    heard: list[Any] = []
    for name in (EventNames.STEP_COMPLETION_SENT, EventNames.STEP_CHECKPOINT_YIELD):
        bridge.subscribe(name, lambda *args: heard.append(args[-1]))
    subscriber = StepExecutionSubscriber(bridge, registry, "worker-1")
    subscriber.start()
    bridge.publish(EventNames.STEP_EXECUTION_RECEIVED, event_of(made))
    subscriber.stop()
    bridge.publish(EventNames.STEP_EXECUTION_RECEIVED, event_of(made))
    return heard


@pytest.mark.parametrize("handler", [charge, charge_later])
def test_a_step_that_arrives_as_an_event_is_run_once(bridge: EventBridge, handler: Any) -> None:
    (result,) = completed(bridge, handler, context({"amount": "later"}))
    assert isinstance(result, StepExecutionResult)
    assert (result.success, result.result, result.worker_id) == (True, {"charged": "later"}, "worker-1")


def test_a_failed_step_is_reported(bridge: EventBridge) -> None:
    (result,) = completed(bridge, charge, context({"fail": True}))
    assert (result.success, result.status) == (False, "retryable_error")
    assert "ValueError" in result.error.stack_trace


def test_a_step_that_nobody_handles_is_reported(bridge: EventBridge) -> None:
    (result,) = completed(bridge, None, context())
    assert (result.status, result.error.error_type) == ("permanent_error", "handler_not_found")


def test_a_yield_is_reported_as_a_yield(bridge: EventBridge) -> None:
    (stop,) = completed(bridge, charge, context({"yield": True}))
    assert stop["cursor"] == 5
