from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
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
from tasker.errors import TemplateError, UsageError
from tasker.event_bridge import EventBridge, EventNames
from tasker.handlers.events.poller import InProcessChannel
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.logging import log_info, log_trace
from tasker.step_execution_subscriber import StepExecutionSubscriber
from tasker.step_handler import checkpoint_yield, step_handler
from tasker.template_discovery import HandlerDiscovery, TemplateParser, TemplatePath
from tasker.types import InProcessDomainEvent, LogContext, StepContext, StepExecutionResult
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
    bridge.publish(EventNames.STEP_EXECUTION_RECEIVED, made.event)
    subscriber.stop()
    bridge.publish(EventNames.STEP_EXECUTION_RECEIVED, made.event)
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
    assert stop.cursor == 5


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


TEMPLATE = """
name: checkout
namespace_name: shop
version: 1.0
steps:
  - {name: a, handler: {callable: validate}}
  - {name: b, handler: charge}
  - {name: c, handler: charge}
"""


def test_templates_in_a_folder_tell_their_handlers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shop").mkdir()
    file = tmp_path / "shop" / "workflow.yaml"
    file.write_text(TEMPLATE + "---\n" + TEMPLATE.replace("shop", "bank").replace("validate", "check"))
    (tmp_path / "settings.yml").write_text("a: 1\n")
    assert TemplateParser.extract_handler_callables(file) == ["validate", "charge", "check"]
    assert HandlerDiscovery.discover_all_handlers(tmp_path) == ["charge", "check", "validate"]
    assert HandlerDiscovery.discover_handlers_by_namespace(tmp_path) == {
        "shop": ["charge", "validate"],
        "bank": ["charge", "check"],
    }
    assert TemplateParser.extract_template_metadata(file)["version"] == "1.0"
    monkeypatch.setenv("TASKER_TEMPLATE_PATH", str(tmp_path))
    assert TemplatePath.find_template_config_directory() == tmp_path
    info = HandlerRegistry().template_discovery_info()
    assert (info["template_count"], info["handlers"], info["registered"]) == (2, ["charge", "check", "validate"], [])


def test_a_file_that_is_not_yaml_is_named(tmp_path: Path) -> None:
    file = tmp_path / "broken.yaml"
    file.write_text("a: [1\n")
    with pytest.raises(TemplateError, match=r"broken\.yaml is not YAML"):
        TemplateParser.extract_handler_callables(file)
