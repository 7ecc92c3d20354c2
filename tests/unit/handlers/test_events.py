from __future__ import annotations

import logging
from typing import Any

import pytest

from tasker.domain_events import (
    BasePublisher,
    BaseSubscriber,
    DefaultPublisher,
    EventDeclaration,
    InProcessDomainEventPoller,
    PublisherRegistry,
    StepEventContext,
    SubscriberRegistry,
)
from tasker.errors import UsageError
from tasker.handlers.events.poller import InProcessChannel
from tasker.logging import log_info, log_trace
from tasker.types import InProcessDomainEvent, LogContext
from tests.unit.handlers.support import context


class Payments(BasePublisher):
    publisher_name = "payments"

    def __init__(self) -> None:
        self.channel = InProcessChannel(capacity=1)
        self.deliver = self.channel.send
        self.after: list[str] = []
        self.errors: list[str] = []

    def should_publish(self, ctx: StepEventContext) -> bool:
        return ctx.step_name != "quiet"

    def transform_payload(self, ctx: StepEventContext) -> dict[str, Any]:
        return {"id": (ctx.result or {})["payment_id"]}

    def additional_metadata(self, ctx: StepEventContext) -> dict[str, Any]:
        return {"region": "eu"}

    def after_publish(self, event_name: str, payload: dict[str, Any], metadata: dict[str, Any]) -> None:
        self.after.append(event_name)

    def on_publish_error(self, event_name: str, error: Exception, payload: dict[str, Any]) -> None:
        self.errors.append(f"{event_name}: {error!r}")


def event_context(name: str = "charge", result: dict[str, Any] | None = None) -> StepEventContext:
    return StepEventContext.from_step_context(
        context(name=name), result={"payment_id": 7} if result is None else result
    )


def test_a_published_event_has_the_form_that_subscribers_read() -> None:
    publisher = Payments()
    assert publisher.publish(event_context(), "payment.completed") is True
    event = publisher.channel.receive()
    read = InProcessDomainEvent.model_validate(event)
    assert (read.event_name, read.payload, read.metadata.fired_by) == ("payment.completed", {"id": 7}, "payments")
    assert event is not None
    assert event["metadata"]["region"] == "eu"
    assert publisher.after == ["payment.completed"]


def test_a_publisher_that_fails_never_raises() -> None:
    publisher = Payments()
    assert publisher.publish(event_context(result={}), "payment.completed") is False
    assert publisher.errors == ["payment.completed: KeyError('payment_id')"]
    assert publisher.publish(event_context("quiet")) is False


def test_a_full_channel_drops_and_counts() -> None:
    publisher = Payments()
    assert [publisher.publish(event_context()) for _ in range(3)] == [True, False, False]
    assert (publisher.channel.dropped, publisher.after) == (2, ["shop.charge"])


class Audit(BaseSubscriber):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    @classmethod
    def subscribes_to(cls) -> list[str]:
        return ["payment.*", "order.done"]

    def handle(self, event: dict[str, Any]) -> None:
        self.seen.append(event["event_name"])


class Broken(Audit):
    def handle(self, event: dict[str, Any]) -> None:
        raise RuntimeError("no")


def test_subscribers_get_what_fits_and_do_not_disturb_each_other(caplog: pytest.LogCaptureFixture) -> None:
    channel = InProcessChannel()
    poller = InProcessDomainEventPoller(channel=channel)
    registry = SubscriberRegistry()
    audit = Audit()
    registry.register(Broken)
    registry.register_instance(audit)
    assert registry.start_all(poller) == 2
    assert registry.start_all(poller) == 0
    for name in ("payment.done", "order.done", "order.lost"):
        channel.send({"event_name": name})
    assert poller.poll() == 3
    assert audit.seen == ["payment.done", "order.done"]
    assert "Broken failed at payment.done" in caplog.text
    assert registry.stats()["active"] == registry.stop_all() == 2
    channel.send({"event_name": "payment.late"})
    poller.poll()
    assert len(audit.seen) == 2


def test_the_poller_delivers_what_is_waiting_before_it_stops() -> None:
    channel = InProcessChannel()
    poller = InProcessDomainEventPoller(channel=channel, max_events_per_poll=5000)
    heard: list[Any] = []
    poller.on_event(heard.append)
    poller.start()
    for n in range(900):
        channel.send({"event_name": str(n)})
    poller.stop()
    assert not poller.is_running
    assert len(heard) == poller.stats["events_processed"] == 900


def test_the_poller_reports_callbacks_that_raise() -> None:
    channel = InProcessChannel()
    poller = InProcessDomainEventPoller(channel=channel)
    errors: list[Exception] = []
    poller.on_event(lambda event: event["missing"])
    poller.on_error(errors.append)
    channel.send({})
    poller.poll()
    assert [type(e) for e in errors] == [KeyError]
    assert poller.stats["events_failed"] == 1


def test_publishers_are_known_by_name_until_frozen() -> None:
    registry = PublisherRegistry()
    registry.register(Payments())
    registry.register(DefaultPublisher(), "other")
    assert registry.list_publishers() == ["other", "payments"]
    assert registry.get_or_default("nobody").publisher_name == "default"
    assert registry.validate_required(["payments", "nobody"]) == ["nobody"]
    registry.freeze()
    with pytest.raises(UsageError, match="frozen"):
        registry.register(Payments())
    registry.clear()
    assert (registry.is_frozen, registry.get("payments")) == (False, None)


def test_shared_registries_can_be_reset() -> None:
    publishers, subscribers = PublisherRegistry.instance(), SubscriberRegistry.instance()
    assert PublisherRegistry.instance() is publishers
    PublisherRegistry.reset()
    SubscriberRegistry.reset()
    assert PublisherRegistry.instance() is not publishers
    assert SubscriberRegistry.instance() is not subscribers


def test_a_declaration_reads_schema() -> None:
    declared = EventDeclaration.model_validate({"name": "a.b", "condition": "success", "schema": {"type": "object"}})
    assert declared.schema == declared.schema_ == {"type": "object"}


def test_fields_are_written_behind_the_message(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "tasker.handlers"):
        log_info("Step completed", {"success": True, "duration_ms": 150})
        log_info("Started", LogContext(operation="charge"))
        log_trace("too much")
    assert [r.getMessage() for r in caplog.records] == [
        "Step completed success=true duration_ms=150",
        "Started operation=charge",
    ]
    assert caplog.records[0].__dict__["fields"] == {"success": True, "duration_ms": 150}
