"""What the end of an attempt publishes: payloads, schemas, publishers that fail or hang, and who is told of it."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tasker.domain_events import BasePublisher, BaseSubscriber, PublisherRegistry, StepEventContext, SubscriberRegistry
from tasker.engine.exchange import Result
from tasker.execution.custom_publishers import MOST_STUCK, CustomPublishers
from tasker.execution.event_bus import AcceptedEventBus
from tasker.execution.event_making import EventFactory
from tasker.handlers.claims import Claim, Failure, HandlerEvent, Success
from tasker.handlers.events.poller import InProcessChannel
from tasker.json_values import JsonText
from tasker.template.plan import Plan, RetryPolicy, StepPlan
from tasker.testing.contexts import step_context
from tests.support.random_plans import Spec, build_plan

WHOSE = "correlation_id=c task_uuid=t step_uuid=s namespace=shop step_name=charge attempt=1"
SCHEMA = {"type": "object", "required": ["order"]}
FAILURE = Failure("no card", "declined", True, error_code="E1")


@pytest.fixture(autouse=True)
def registries() -> Iterator[None]:
    yield
    PublisherRegistry.reset()
    SubscriberRegistry.reset()


class Pay(BasePublisher):
    """Does what `act` does."""

    def __init__(self, act: Any = lambda ctx: {"made": True}) -> None:
        self.act, self.accepted = act, threading.Event()

    @property
    def publisher_name(self) -> str:
        return "pay"

    def transform_payload(self, ctx: StepEventContext) -> dict[str, Any]:
        made: dict[str, Any] = self.act(ctx)
        return made

    def additional_metadata(self, ctx: StepEventContext) -> dict[str, Any]:
        return {"provider": "x"}

    def after_publish(self, event_name: str, payload: dict[str, Any], metadata: dict[str, Any]) -> None:
        self.accepted.set()


def planned(*events: dict[str, Any], **more: Any) -> tuple[Plan, StepPlan]:
    complete = tuple({"condition": "always", "delivery_mode": "durable", **event} for event in events)
    plan = build_plan(Spec("charge", publishes=complete, retry=RetryPolicy(max_attempts=2)))
    step = replace(plan.steps[0], **more)
    return replace(plan, steps=(step,)), step


async def made(*events: dict[str, Any], outcome: Any = None, attempt: int = 1, limit: float = 5, **more: Any) -> Result:
    """The result of a step that publishes these events."""
    plan, step = planned(*events, **more)
    claim = Claim("s", "t", "charge", 1, 0, "shop", 1, attempt, 2, "c", worker="w")
    result = Result(claim, plan, 5, outcome or Success(JsonText('{"order":7,"card":"4111"}')))
    ids = (f"id{number}" for number in itertools.count())
    return await EventFactory(CustomPublishers(limit), lambda: next(ids)).with_events(result, step)


def stored(result: Result) -> dict[str, Any]:
    assert result.events is not None
    return dict(result.events.stored)


async def test_a_durable_event_of_the_result_as_it_is_costs_nothing_beside_it() -> None:
    assert stored(await made({"name": "paid"})) == {}


async def test_a_payload_that_does_not_fit_is_withheld_with_the_place() -> None:
    found = stored(await made({"name": "paid", "schema": {"type": "object", "required": ["nope"]}}))
    assert "$.nope" in found["0"]["w"]
    assert stored(await made({"name": "paid", "schema": SCHEMA})) == {}


async def test_what_is_marked_as_sensitive_is_published_only_where_the_event_declares_it() -> None:
    marked = {"type": "object", "properties": {"card": {"type": "string", "x-sensitive": True}}}
    hidden, shown = {"name": "a"}, {"name": "b", "schema": marked}

    found = stored(await made(hidden, shown, result_schema=marked))

    assert "4111" not in found["0"]["p"].text
    assert "4111" in found["1"]["p"].text


async def test_a_broadcast_event_has_the_same_id_on_both_ways() -> None:
    result = await made({"name": "paid", "delivery_mode": "broadcast"}, {"name": "here", "delivery_mode": "fast"})
    assert result.events is not None
    assert {number: entry["id"] for number, entry in stored(result).items()} == {"0": "id0"}
    assert [(mode, each.event and each.event["event_id"]) for mode, each in result.events.here] == [
        ("broadcast", "id0"),
        ("fast", "id1"),
    ]


@pytest.mark.parametrize(
    ("outcome", "attempt", "names"),
    [
        (None, 1, ["success"]),
        (FAILURE, 1, ["failure", "retryable_failure"]),
        (FAILURE, 2, ["failure", "permanent_failure"]),
        (replace(FAILURE, retryable=False), 1, ["failure", "permanent_failure"]),
    ],
)
async def test_the_last_attempt_is_a_permanent_failure(outcome: Any, attempt: int, names: list[str]) -> None:
    conditions = ("success", "failure", "retryable_failure", "permanent_failure")
    events = [{"name": each, "condition": each, "delivery_mode": "fast"} for each in conditions]
    result = await made(*events, outcome=outcome, attempt=attempt)
    assert result.events is not None
    assert [each.event and each.event["event_name"] for _, each in result.events.here] == names


async def test_a_publisher_makes_payload_and_metadata() -> None:
    PublisherRegistry.instance().register(
        Pay(lambda ctx: {"order": ctx.result["order"], "on": ctx.metadata["event_name"]})
    )
    (entry,) = stored(await made({"name": "paid", "publisher": "pay"})).values()
    assert entry["p"].text == '{"order":7,"on":"paid"}'
    assert '"provider":"x"' in entry["m"].text
    assert entry["by"] == "pay"


async def test_a_publisher_finds_what_its_event_declares_what_came_of_the_step_and_what_it_was_given() -> None:
    seen: list[StepEventContext] = []
    PublisherRegistry.instance().register(Pay(lambda ctx: seen.append(ctx) or {}))
    plan, step = planned({"name": "paid", "publisher": "pay", "schema": {"type": "object"}})
    claim = Claim("s", "t", "charge", 1, 0, "shop", 1, 1, 2, "c", worker="w")
    outcome = Success(JsonText('{"order":7}'), {"payment_provider": "x"})
    context = step_context({"amount": 5})
    maker = EventFactory(CustomPublishers(60), lambda: "id")

    await maker.with_events(Result(claim, plan, 5, outcome), step, lambda: context)
    await maker.with_events(Result(claim, plan, 5, FAILURE), step)

    paid, failed = seen
    assert paid.declaration is not None
    assert (paid.declaration.name, paid.declaration.schema) == ("paid", {"type": "object"})
    assert paid.step_result is not None
    assert paid.step_result.metadata == {"payment_provider": "x", "execution_time_ms": 5}
    assert (paid.step_result.success, paid.step_result.result) == (True, {"order": 7})
    assert paid.step_context.get_input("amount") == 5
    assert "payment_provider" not in paid.metadata, "that would publish it"
    assert failed.step_result is not None
    assert failed.step_result.metadata == {"execution_time_ms": 5, "error_type": "declined", "error_code": "E1"}
    assert failed.step_context is None


@pytest.mark.parametrize(
    ("act", "why"),
    [
        (lambda ctx: 1 / 0, "ZeroDivisionError"),
        (lambda ctx: [1], "no mapping"),
        (lambda ctx: {"n": float("nan")}, "cannot be stored"),
        (lambda ctx: (_ for _ in ()).throw(SystemExit(3)), "SystemExit"),
    ],
)
async def test_whatever_a_publisher_does_the_result_stays(act: Any, why: str, caplog: pytest.LogCaptureFixture) -> None:
    PublisherRegistry.instance().register(Pay(act))
    result = await made({"name": "paid", "publisher": "pay"})
    assert why in stored(result)["0"]["w"]
    assert result.success is not None
    assert "Failed to publish domain event - step will continue" in caplog.text


async def test_a_publisher_that_hangs_is_left_behind_and_then_not_called_any_more() -> None:
    release, calls = threading.Event(), []

    def hang(ctx: StepEventContext) -> dict[str, Any]:
        calls.append(ctx)
        release.wait()
        return {}

    custom, publisher = CustomPublishers(0.001), Pay(hang)
    context = StepEventContext(
        task_uuid="t", step_uuid="s", step_name="n", namespace="n", correlation_id="c", result={}, metadata={}
    )
    said = [await custom.ask(publisher, context, "paid") for _ in range(MOST_STUCK + 1)]
    release.set()

    assert len(calls) == MOST_STUCK
    assert "did not answer" in str(said[0].withheld)
    assert "is not called" in str(said[-1].withheld)


async def test_a_publisher_that_nobody_registered_is_warned_of_and_the_result_published(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert stored(await made({"name": "paid", "publisher": "nobody"})) == {}
    (line,) = caplog.messages
    assert line.startswith(f"publisher_unknown {WHOSE} publisher=nobody event_name=paid ")
    assert line.endswith("effect='the result is published'")


async def test_an_event_that_a_defect_prevents_is_a_line_of_its_step_with_the_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    plan, step = planned({"name": "paid"})
    claim = Claim("s", "t", "charge", 1, 0, "shop", 1, 1, 2, "c", worker="w")
    maker = EventFactory(CustomPublishers(1), [].pop)  # type: ignore[arg-type]

    result = await maker.with_events(Result(claim, plan, 5, success(own("mine"))), step)

    assert [entry["w"] for entry in stored(result).values()] == ["IndexError('pop from empty list')"] * 2
    why = "error=\"IndexError('pop from empty list')\" error_type=IndexError"
    ids, named = WHOSE.split(" step_name=")
    line = f"event_payload_failed {ids} {why} step_name={named} event_name="
    assert caplog.messages == [f"{line}paid", f"{line}mine"]
    assert all(record.levelname == "ERROR" and record.exc_info for record in caplog.records)


async def test_subscribers_hear_of_accepted_results_and_a_full_channel_drops(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[str] = []

    class Heard(BaseSubscriber):
        @classmethod
        def subscribes_to(cls) -> list[str]:
            return ["h*"]

        def handle(self, event: dict[str, Any]) -> None:
            heard.append(event["event_name"])

    SubscriberRegistry.instance().register(Heard)
    bus = AcceptedEventBus(CustomPublishers(1), channel=InProcessChannel())
    bus.accepted([await made({"name": "here", "delivery_mode": "fast"}, {"name": "kept"})])
    bus.close()
    assert heard == ["here"]

    full = InProcessChannel()
    full.pollers = 1  # the program's own, which does not come
    small = AcceptedEventBus(CustomPublishers(1), channel=full, capacity=1)
    small.accepted([await made({"name": "here", "delivery_mode": "fast"}, {"name": "more", "delivery_mode": "fast"})])
    assert (len(full), full.dropped) == (1, 1)
    text = "Domain event dispatch failed - channel full (events dropped)"
    assert caplog.messages == [f"{text} {WHOSE} event_name=more event_id=id1 dropped=1"]


async def test_an_event_that_is_told_again_reaches_subscribers_once_as_long_as_it_is_remembered() -> None:
    channel = InProcessChannel()
    channel.pollers = 1  # the program's own, which looks later
    bus = AcceptedEventBus(CustomPublishers(1), channel=channel, remembered=2)
    result = await made({"name": "here", "delivery_mode": "fast"}, {"name": "all", "delivery_mode": "broadcast"})
    bus.accepted([result, result])
    assert (len(channel), bus.sent, bus.routed) == (2, 2, {"fast": 2, "broadcast": 2})
    other = await made(*({"name": "x", "delivery_mode": "fast"} for _ in range(3)))
    bus.accepted([other, result])
    assert bus.sent == 2 + 1 + 2, "id2 is new, and what was before it is forgotten"


async def test_a_publisher_is_told_once_its_event_is_accepted() -> None:
    publisher = Pay()
    PublisherRegistry.instance().register(publisher)
    result = await made({"name": "paid", "publisher": "pay"})
    assert not publisher.accepted.is_set()
    AcceptedEventBus(CustomPublishers(1), channel=InProcessChannel()).accepted([result])
    assert await asyncio.to_thread(publisher.accepted.wait, 60)


def own(name: str, payload: str | None = '{"order":7}', **more: Any) -> HandlerEvent:
    return HandlerEvent(name, payload and JsonText(payload), **more)


def success(*events: HandlerEvent) -> Success:
    return Success(JsonText('{"order":7}'), events=events)


async def test_what_a_handler_published_itself_stands_behind_what_its_step_declares() -> None:
    events = own("mine"), own("here", delivery_mode="fast"), own("both", delivery_mode="broadcast")

    result = await made({"name": "paid"}, {"name": "seen", "delivery_mode": "fast"}, outcome=success(*events))

    found = stored(result)
    assert {number: (entry["n"], entry["d"], entry["c"]) for number, entry in found.items()} == {
        "2": ("mine", "durable", "success"),
        "4": ("both", "broadcast", "success"),
    }
    assert (found["2"]["p"].text, found["2"]["by"]) == ('{"order":7}', "noop")
    assert result.events is not None
    assert [each.event and each.event["event_name"] for _, each in result.events.here] == [
        "paid",
        "seen",
        "mine",
        "here",
        "both",
    ]
    assert len({each.event["event_id"] for _, each in result.events.here if each.event}) == 5


async def test_the_engine_gets_those_of_every_outcome_and_this_process_those_of_this_one() -> None:
    events = own("ended"), own("broken", condition="failure"), own("any", condition="always")

    result = await made(outcome=replace(FAILURE, events=events))

    assert [entry["n"] for entry in stored(result).values()] == ["ended", "broken", "any"]
    assert result.events is not None
    assert [each.event and each.event["event_name"] for _, each in result.events.here] == ["broken", "any"]


async def test_what_a_checkpoint_carries_stays_with_it_while_the_step_is_tried_again() -> None:
    events = own("before", condition="always", carried=True), own("after", condition="always")

    again = await made(outcome=replace(FAILURE, events=events), attempt=1)
    last = await made(outcome=replace(FAILURE, events=events), attempt=2)

    assert [entry["n"] for entry in stored(again).values()] == ["after"]
    assert [entry["n"] for entry in stored(last).values()] == ["before", "after"]


async def test_what_the_template_says_of_a_name_counts_for_handlers_too(caplog: pytest.LogCaptureFixture) -> None:
    plan, step = planned({"name": "paid", "condition": "failure", "schema": SCHEMA})
    plan = replace(plan, domain_events=({"name": "listed", "schema": {"type": "object", "required": ["nope"]}},))
    claim = Claim("s", "t", "charge", 1, 0, "shop", 1, 1, 2, "c", worker="w")
    events = own("paid"), own("paid", "{}"), own("listed"), own("unknown", "{}"), own("bad", None, withheld="no JSON")
    maker = EventFactory(CustomPublishers(1), lambda: "id")

    result = await maker.with_events(Result(claim, plan, 5, success(*events)), step)

    why = [str(entry.get("w")) for entry in stored(result).values()]
    assert ["$.order" in why[1], "$.nope" in why[2], why[0], *why[3:]] == [True, True, "None", "None", "no JSON"]
    assert maker.refused == 3
    assert caplog.text.count("Failed to publish domain event - step will continue") == 3
