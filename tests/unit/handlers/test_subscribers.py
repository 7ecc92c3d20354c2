"""Subscribers of a running poller hear each in a thread of their own: none holds up another."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from tasker.domain_events import (
    BaseSubscriber,
    InProcessDomainEventPoller,
    InProcessEventBus,
    LoggingSubscriber,
    MetricsSubscriber,
    SubscriberRegistry,
)
from tasker.handlers.events.delivery import SubscriberThread
from tasker.handlers.events.poller import InProcessChannel
from tasker.settings.queues import InProcessEvents
from tests.support.waiting import until


class Subscriber(BaseSubscriber):
    @classmethod
    def subscribes_to(cls) -> list[str]:
        return ["n.*"]

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def handle(self, event: dict[str, Any]) -> None:
        assert "spoiled" not in event
        self.seen.append(event["event_name"])


class Blocks(Subscriber):
    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Event()

    def handle(self, event: dict[str, Any]) -> None:
        self.go.wait(60)
        super().handle(event)


class Raises(Subscriber):
    def handle(self, event: dict[str, Any]) -> None:
        super().handle(event)
        event["spoiled"] = True
        raise RuntimeError("no") if len(self.seen) % 2 else SystemExit("no")


@pytest.fixture
def registry() -> Iterator[SubscriberRegistry]:
    """That of this process, which is empty again behind the test."""
    SubscriberRegistry.reset()
    yield SubscriberRegistry.instance()
    SubscriberRegistry.reset()


class Heard:
    """A channel and a poller that runs, with these subscribers."""

    def __init__(self, *subscribers: BaseSubscriber, limits: InProcessEvents) -> None:
        self.channel, self.registry = InProcessChannel(5000), SubscriberRegistry()
        self.poller = InProcessDomainEventPoller(1, channel=self.channel, limits=limits)
        for each in subscribers:
            self.registry.register_instance(each)
        self.registry.start_all(self.poller)

    def publish(self, *numbers: int) -> None:
        for number in numbers:
            assert self.channel.send({"event_name": f"n.{number}"})


@pytest.fixture
def blocks() -> Iterator[Blocks]:
    made = Blocks()
    yield made
    made.go.set()


def test_one_that_blocks_and_one_that_raises_hold_up_nobody_and_are_counted_and_told_of(
    blocks: Blocks, caplog: pytest.LogCaptureFixture
) -> None:
    raises, good = Raises(), Subscriber()
    heard = Heard(blocks, raises, good, limits=InProcessEvents(broadcast_buffer_size=100, dispatch_timeout_ms=0))
    heard.poller.start()
    wanted = [f"n.{number}" for number in range(150)]
    for until_now in (75, 150):
        heard.publish(*range(until_now - 75, until_now))
        until(lambda: good.seen == wanted[:until_now], "the third hears all, in order, while the first still blocks")  # noqa: B023
        until(lambda: len(raises.seen) == until_now, "so does the one that raises")  # noqa: B023
    assert blocks.seen == []
    stats = heard.poller.stats
    assert (stats["events_processed"], stats["events_dropped"]) == (150, 150 - 101), "one in hand, a hundred wait"
    until(lambda: "Subscriber timeout subscriber=Blocks event_name=n.0" in caplog.text, "it is told of")
    assert caplog.text.count("subscriber_overflow subscriber=Blocks waiting=100") == 1
    assert raises.failed + stats["events_failed"] == 150
    assert "Raises failed at n.0" in caplog.text

    blocks.go.set()
    heard.poller.stop()
    assert blocks.seen == wanted[:101], "it goes on where it was"
    assert "subscriber_backlogged subscriber=Blocks dropped=49 waiting=0" in caplog.text


def test_one_that_hangs_at_the_stop_is_left_and_its_rest_told(blocks: Blocks, caplog: pytest.LogCaptureFixture) -> None:
    heard = Heard(blocks, limits=InProcessEvents())
    heard.poller.start()
    heard.publish(1, 2, 3)
    heard.poller.stop(timeout=0.2)
    assert "subscriber_backlogged subscriber=Blocks dropped=0 waiting=2" in caplog.text


def test_what_subscribers_raise_is_counted_and_not_logged_where_that_is_asked_for(
    caplog: pytest.LogCaptureFixture,
) -> None:
    raises = Raises()
    heard = Heard(raises, limits=InProcessEvents(log_subscriber_errors=False))
    heard.publish(1)
    assert heard.poller.poll() == 1
    assert (heard.registry.failed, caplog.text) == (1, "")


def test_a_poller_that_was_stopped_brings_events_again_when_it_is_started(blocks: Blocks) -> None:
    good = Subscriber()
    heard = Heard(good, limits=InProcessEvents())
    for number in (1, 2):
        heard.registry.start_all(heard.poller)
        heard.poller.start()
        heard.publish(number)
        heard.poller.stop()
        heard.registry.stop_all()
    assert good.seen == ["n.1", "n.2"], "once each"


def test_whom_nothing_fits_gets_no_thread() -> None:
    made: list[dict[str, Any]] = []
    listener = SubscriberThread("x", made.append, lambda name: False, lambda error: None, InProcessEvents())
    listener.enqueue("n.1", {})
    assert (listener.waiting, made) == (0, [])
    assert not [each for each in threading.enumerate() if each.name == "tasker subscriber x"]


class Async(Subscriber):
    """Hears in a loop, with hooks in it; the first event takes for ever."""

    def __init__(self) -> None:
        super().__init__()
        self.loops: set[int] = set()
        self.errors: list[str] = []

    async def before_handle(self, event: dict[str, Any]) -> bool:
        self.loops.add(id(asyncio.get_running_loop()))
        return event["event_name"] != "n.3"

    async def handle(self, event: dict[str, Any]) -> None:
        self.loops.add(id(asyncio.get_running_loop()))
        if event["event_name"] == "n.0":
            await asyncio.Event().wait()
        super().handle(event)
        if event["event_name"] == "n.2":
            raise RuntimeError("no")

    async def after_handle(self, event: dict[str, Any]) -> None:
        self.seen.append("after")

    async def on_handle_error(self, event: dict[str, Any], error: Exception) -> None:
        self.errors.append(str(error))


def test_an_async_subscriber_hears_in_one_loop_and_is_cancelled_where_it_takes_too_long() -> None:
    hears, good = Async(), Subscriber()
    heard = Heard(hears, good, limits=InProcessEvents(dispatch_timeout_ms=20))
    heard.poller.start()
    heard.publish(0, 1, 2, 3, 4)
    until(lambda: len(hears.seen) == 5, "it goes on behind the one that was cancelled")
    heard.poller.stop(60)
    assert hears.seen == ["n.1", "after", "n.2", "n.4", "after"]
    assert hears.errors == ["Subscriber timeout: it was cancelled after 0.02 seconds", "no"]
    assert (hears.failed, len(hears.loops), len(good.seen)) == (2, 1, 5)


async def test_a_program_that_polls_in_its_own_loop_waits_for_async_subscribers() -> None:
    hears, called = Async(), list[str]()

    async def callback(event: dict[str, Any]) -> None:
        called.append(event["event_name"])

    heard = Heard(hears, limits=InProcessEvents())
    heard.poller.on_event(callback)
    heard.publish(1)
    assert heard.poller.poll() == 1
    assert (hears.seen, called) == (["n.1", "after"], ["n.1"])


def test_functions_hear_of_what_fits_their_pattern_until_they_have_enough(registry: SubscriberRegistry) -> None:
    seen: dict[str, list[str]] = {"*": [], "payment.*": [], "payment.made": []}
    channel = InProcessChannel()
    poller = InProcessDomainEventPoller(1, channel=channel)

    def plain(event: dict[str, Any]) -> None:
        seen["*"].append(event["event_name"])

    async def some(event: dict[str, Any]) -> None:
        seen["payment.*"].append(event["event_name"])

    async def one(event: dict[str, Any]) -> None:
        seen["payment.made"].append(event["event_name"])

    bus = InProcessEventBus()
    enough = bus.subscribe("*", plain)
    bus.subscribe("payment.*", some)
    bus.subscribe("payment.made", one)
    for name in ("order.made", "payment.made", "payment.card.made", "last"):
        registry.start_all(poller)  # as the worker does with each event
        channel.send({"event_name": name})
        poller.poll()
        if name == "payment.card.made":
            enough()
    assert seen == {
        "*": ["order.made", "payment.made", "payment.card.made"],
        "payment.*": ["payment.made", "payment.card.made"],
        "payment.made": ["payment.made"],
    }
    assert list(registry.list_registered().values()) == [["payment.*"], ["payment.made"]]


def test_a_function_that_raises_is_named_in_the_log(
    registry: SubscriberRegistry, caplog: pytest.LogCaptureFixture
) -> None:
    async def breaks(event: dict[str, Any]) -> None:
        raise RuntimeError("no")

    channel = InProcessChannel()
    poller = InProcessDomainEventPoller(1, channel=channel)
    InProcessEventBus().subscribe("*", breaks)
    registry.start_all(poller)
    channel.send({"event_name": "n.1"})
    poller.poll()
    assert "breaks failed at n.1" in caplog.text
    assert (registry.failed, poller.listeners[0].name.split(".")[-1]) == (1, "breaks")


EVENT = {
    "event_id": "e1",
    "event_name": "n.1",
    "metadata": {"task_uuid": "t", "namespace": "shop", "correlation_id": "c", "fired_at": "now"},
    "execution_result": {"success": True},
}


def test_the_logging_subscriber_writes_a_line_of_each_event(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "tasker.domain_events"):
        LoggingSubscriber("[PAYMENT]").handle(EVENT)
    assert caplog.messages == [
        "Domain event received correlation_id=c task_uuid=t namespace=shop fired_at=now event_name=n.1 event_id=e1 "
        "step_name=unknown prefix=[PAYMENT]"
    ]


def test_the_metrics_subscriber_counts() -> None:
    counts, at = MetricsSubscriber(lambda: datetime(2026, 1, 31, tzinfo=UTC)), datetime(2026, 1, 31, tzinfo=UTC)
    for success in (True, True, False):
        counts.handle({**EVENT, "execution_result": {"success": success}})
    counts.handle({})
    assert (counts.events_received, counts.success_events, counts.failure_events) == (4, 2, 2)
    assert (counts.events_by_namespace, counts.last_event_at) == ({"shop": 3, "unknown": 1}, at)
    counts.reset()
    assert (counts.events_received, counts.events_by_namespace, counts.last_event_at) == (0, {}, None)
