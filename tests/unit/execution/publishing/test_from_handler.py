"""What a handler publishes itself: taken while it runs, wherever it runs, and brought with what it comes to."""

from __future__ import annotations

import json
import logging
import pickle
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from tasker.domain_events import publish_domain_event
from tasker.engine.exchange import Result
from tasker.errors import ValidationError
from tasker.execution.handler_events import EventBuffer
from tasker.execution.modes.wire import answer
from tasker.handlers.claims import MOST_BYTES, MOST_EVENTS, Failure, HandlerEvent, Success
from tasker.json_values import JsonText, as_stored
from tasker.step_handler import StepHandler
from tasker.testing.contexts import step_context
from tasker.types import StepContext, StepHandlerResult
from tests.unit.execution.bench import Bench, Saver
from tests.unit.execution.modes.child_handlers import PublishesAndFails, PublishesAndYields


class PublishesAsync(PublishesAndYields):
    async def call(self, context: StepContext) -> StepHandlerResult:  # type: ignore[override]
        return super().call(context)


class PublishesInThreads(StepHandler):
    def call(self, context: StepContext) -> StepHandlerResult:
        thread = threading.Thread(target=context.publish_domain_event, args=("mine", {}))
        thread.start()
        thread.join()
        return self.success({})


def names(end: Any) -> list[str]:
    assert isinstance(end, Result)
    return [event.name for event in end.outcome.events]


@pytest.mark.parametrize(
    ("handler", "execution"),
    [(PublishesAsync, None), (PublishesAndYields, None), (PublishesAndYields, "process"), (PublishesAsync, "thread")],
    ids=["on_the_loop", "in_a_thread", "in_a_child", "async_in_a_thread"],
)
async def test_events_come_with_the_result_those_of_before_a_checkpoint_as_well(
    bench: Bench, handler: type[StepHandler], execution: str | None
) -> None:
    save = Saver()

    end = await bench.run(handler, save=save, execution=execution)

    assert isinstance(end, Result)
    assert as_stored(end.success.encoded)["shown"] == ["accumulated_results", "cursor", "history", "items_processed"]
    assert [event.name for event in save.saved[0].events] == ["item.began"]
    assert end.outcome.events == (
        HandlerEvent("item.began", JsonText('{"number":1}'), carried=True),
        HandlerEvent("item.failed", JsonText("{}"), "failure", "fast"),
        HandlerEvent("item.ended", JsonText('{"number":2}'), "success", "broadcast"),
    )


@pytest.mark.parametrize("execution", [None, "process"])
async def test_a_handler_that_raises_has_published_too(bench: Bench, execution: str | None) -> None:
    assert names(await bench.run(PublishesAndFails, execution=execution)) == ["item.failed"]


async def test_a_thread_of_the_handler_publishes_by_its_context(bench: Bench) -> None:
    assert names(await bench.run(PublishesInThreads)) == ["mine"]


async def test_a_handler_that_does_not_come_back_publishes_nothing_and_is_told_so_later(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    go, said = threading.Event(), list[bool]()

    class Late(StepHandler):
        def call(self, context: StepContext) -> StepHandlerResult:
            context.publish_domain_event("before", {}, condition="always")
            go.wait(60)
            return self.success({})

    end = await bench.run(Late, timeout_seconds=0.05)
    go.set()

    assert names(end) == []
    buffer = EventBuffer()
    buffer.taken()
    said.append(buffer.publish("after", {}, "success", "durable"))
    assert said == [False]
    assert "event_name=after error=its handler has ended" in caplog.text


def test_who_publishes_nothing_sends_nothing_more_to_its_parent() -> None:
    for ending in (Success(JsonText("{}")), Failure("no", "E", True)):
        message = answer(["s", 1, 1], ending)
        assert sorted(message) == ["call", "fields", "type"]
        assert "events" not in message["fields"]


def test_a_payload_is_taken_as_it_is_now() -> None:
    buffer, payload = EventBuffer(), {"n": 1}
    assert buffer.publish("a", payload, "success", "durable")
    payload["n"] = 2
    assert [event.payload for event in buffer.taken()] == [JsonText('{"n":1}')]


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        ({"at": object()}, "$.at: a value of type object is not JSON"),
        ({"n": float("nan")}, "$.n: nan is not a JSON number"),
        ({1: 2}, "the key 1 is of type int"),
        ("a bare sentence", "no mapping: str"),
        ({"text": "x" * MOST_BYTES}, "bytes of JSON are more than the"),
    ],
)
def test_what_cannot_be_published_is_withheld_with_the_reason_and_raises_nothing(payload: Any, why: str) -> None:
    buffer = EventBuffer()
    assert buffer.publish("a", payload, "success", "durable") is False
    (event,) = buffer.taken()
    assert event.payload is None
    assert why in str(event.withheld)


def test_events_are_bounded_in_size_and_in_number() -> None:
    large, many = EventBuffer(), EventBuffer()
    half: Mapping[str, Any] = {"text": "x" * (MOST_BYTES // 2)}
    assert [large.publish("a", half, "success", "durable") for _ in range(2)] == [True, False]
    assert "1,048,576 bytes together" in str(large.taken()[1].withheld)

    assert [many.publish("a", {}, "success", "durable") for _ in range(MOST_EVENTS)] == [True] * MOST_EVENTS
    assert [many.publish("a", {}, "success", "durable") for _ in range(3)] == [False] * 3
    assert [event.withheld for event in many.taken()[MOST_EVENTS:]] == [
        "a handler publishes at most 100 events with one result; further ones are left out"
    ]


def test_the_bounds_hold_over_checkpoints() -> None:
    before = EventBuffer()
    for _ in range(MOST_EVENTS):
        before.publish("a", {"text": "x" * 10_000}, "success", "durable")
    after = EventBuffer(json.loads(json.dumps([event.to_json() for event in before.taken()])))
    assert after.publish("a", {}, "success", "durable") is False
    assert (
        EventBuffer([{**before.taken()[0].to_json(), "payload": "x" * MOST_BYTES}]).publish(
            "a", {}, "success", "durable"
        )
        is False
    )


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"name": "no spaces"}, "'no spaces' is no name of an event: use letters"),
        ({"name": "x" * 129}, "at most 128 characters"),
        ({"name": 5}, "5 is no name of an event"),
        ({"condition": "sometimes"}, "'sometimes' is no condition of an event; there are success, failure"),
        ({"delivery_mode": "slow"}, "'slow' is no delivery_mode of an event; there are durable, fast, broadcast"),
    ],
)
def test_a_call_that_could_never_publish_is_an_error(arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        publish_domain_event(**{"name": "a", "payload": {}, **arguments})


def test_where_no_handler_is_running_nothing_is_published_and_that_is_said(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert publish_domain_event("a.b", {}) is False
    assert "event_name=a.b error=no handler is running here" in caplog.text


def test_a_context_that_is_sent_to_another_process_leaves_the_events_here() -> None:
    buffer = EventBuffer()
    context = step_context({"n": 1})
    context._events = buffer
    context.publish_domain_event("here", {})
    copy = pickle.loads(pickle.dumps(context))
    assert copy.publish_domain_event("there", {}) is False
    assert [event.name for event in buffer.taken()] == ["here"]
