"""Events of the application, published by handlers and handled in the same process."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeAlias

from tasker.handlers.events.poller import InProcessDomainEventPoller as EnginePoller
from tasker.handlers.events.poller import Wants
from tasker.handlers.events.publisher import BasePublisher as EnginePublisher
from tasker.handlers.events.publisher import DefaultPublisher as EngineDefault
from tasker.handlers.events.publisher import EventDeclaration, InProcessDomainEvent, PublishContext, StepResult
from tasker.handlers.events.publisher import StepEventContext as EngineContext
from tasker.handlers.events.registries import PublisherRegistry as EnginePublishers
from tasker.handlers.events.registries import SubscriberRegistry as EngineSubscribers
from tasker.handlers.events.subscriber import BaseSubscriber as EngineSubscriber

__all__ = [
    "BasePublisher",
    "BaseSubscriber",
    "DefaultPublisher",
    "DomainEventCallback",
    "ErrorCallback",
    "EventDeclaration",
    "InProcessDomainEventPoller",
    "PublishContext",
    "PublisherRegistry",
    "StepEventContext",
    "StepResult",
    "SubscriberRegistry",
]

log = logging.getLogger("tasker.domain_events")

DomainEventCallback: TypeAlias = Callable[[InProcessDomainEvent], None]
ErrorCallback: TypeAlias = Callable[[Exception], None]


class StepEventContext(EngineContext):
    """Step of an event; `step_name` is the name of its handler."""

    @classmethod
    def from_step_context(
        cls, step_context: Any, result: dict[str, Any] | None = None, metadata: dict[str, Any] | None = None
    ) -> StepEventContext:
        """Create the context of an event about the step that a handler ran."""
        known = EngineContext.from_step_context(step_context, result, metadata)
        return cls(**{**dict(known), "step_name": step_context.handler_name})


class InProcessDomainEventPoller(EnginePoller):
    """Poller that delivers events of the process's channel to all callbacks. An error in one does not affect others."""

    def on_event(self, callback: Any, *, wants: Wants = lambda name: True) -> None:
        """Call `callback` with every event whose name it `wants`, an `InProcessDomainEvent`."""
        super().on_event(callback, wants=wants)

    def start(self) -> None:
        """Start the daemon thread. Raises `RuntimeError` if it is running already."""
        if self.is_running:
            raise RuntimeError("this poller runs already")
        super().start()

    @property
    def stats(self) -> dict[str, int]:
        """Number of polls, of events delivered, and of events dropped because too many waited."""
        counts = super().stats
        return {
            "poll_count": counts["poll_count"],
            "events_processed": counts["events_processed"],
            "events_lagged": counts["events_dropped"],
        }

    def _shown(self, event: dict[str, Any]) -> InProcessDomainEvent:
        return InProcessDomainEvent.model_validate(event)


class BasePublisher(EnginePublisher):
    """Publisher of an event for a finished step, to the subscribers in this process. Override the hooks."""

    def publish(self, ctx: EngineContext, event_name: str | None = None) -> bool:
        """Publish one event, by default named as the step; return True if it was delivered. Never raises an error."""
        return super().publish(ctx, event_name or ctx.step_name)

    def _metadata(self, ctx: EngineContext) -> dict[str, Any]:
        """Return publisher and time, under both names; metadata of the step and the publisher take precedence."""
        origin = self._origin(ctx)
        both = {"publisher": origin["fired_by"], "published_at": origin["fired_at"]}
        return {**both, **origin, **ctx.metadata, **self.additional_metadata(ctx)}


class DefaultPublisher(EngineDefault, BasePublisher):
    """Publisher of events that name none."""


class BaseSubscriber(EngineSubscriber):
    """Subscriber to the events whose name matches one of its patterns (`payment.*`, `order.completed`)."""

    @property
    def subscriptions(self) -> list[str]:
        """The patterns; none before `start`."""
        return super().subscriptions if self.active else []

    def handle_event_safely(self, event: dict[str, Any]) -> None:
        """Handle one event with its hooks; ignored before `start`. Never raises an error."""
        if self.active:
            super().handle_event_safely(event)

    def _receive(self, event: Any) -> None:
        """Convert the poller's model to plain data for the subscriber."""
        super()._receive(event if isinstance(event, dict) else event.model_dump())


class PublisherRegistry(EnginePublishers):
    """Publishers by name. A frozen registry accepts no more."""

    _instance = None

    def get_or_default(self, name: str) -> Any:
        """Return the publisher of that name, or the default one."""
        return self.get(name) or DefaultPublisher()

    def register(self, publisher: Any, name: str | None = None) -> None:
        """Register a publisher. Raises `RuntimeError` if the registry is frozen, `ValueError` for another type."""
        self._refuse_frozen("register a publisher")
        if not isinstance(publisher, BasePublisher):
            raise ValueError(f"a publisher is an instance of BasePublisher, found {publisher!r}")
        super().register(publisher, name)

    def list_publishers(self) -> list[str]:
        """Return the names, in the order of registration."""
        return list(self._publishers)

    def clear(self) -> None:
        """Remove every publisher. Raises `RuntimeError` if the registry is frozen."""
        self._refuse_frozen("clear it")
        super().clear()

    def _refuse_frozen(self, wanted: str) -> None:
        if self.is_frozen:
            raise RuntimeError(f"the registry of publishers is frozen: unfreeze() before you {wanted}")


class SubscriberRegistry(EngineSubscribers):
    """Subscribers: classes, of which `start_all` creates instances, and instances."""

    _instance = None

    def __init__(self) -> None:
        super().__init__()
        self._started: list[BaseSubscriber] = []
        self._by_name: dict[str, type[BaseSubscriber]] = {}

    def register(self, subscriber_class: Any) -> None:
        """Register a class under its name. Raises `ValueError` for another type."""
        if not isinstance(subscriber_class, type) or not issubclass(subscriber_class, BaseSubscriber):
            raise ValueError(f"a subscriber is a subclass of BaseSubscriber, found {subscriber_class!r}")
        self._by_name[subscriber_class.__name__] = subscriber_class

    def register_instance(self, subscriber: Any, name: str | None = None) -> None:
        """Register an instance. Raises `ValueError` for another type."""
        if not isinstance(subscriber, BaseSubscriber):
            raise ValueError(f"a subscriber is an instance of BaseSubscriber, found {subscriber!r}")
        super().register_instance(subscriber, name)

    def start_all(self, poller: EnginePoller) -> int:
        """Start every subscriber; return the number started. Errors are logged, and the subscriber is skipped."""
        before = len(self._started)
        for made in [*self._by_name.values(), *(value for value in self._subscribers.values())]:
            self._start(made, poller)
        return len(self._started) - before

    def stop_all(self) -> int:
        """Stop every started subscriber; return their number."""
        started, self._started = self._started, []
        for subscriber in started:
            subscriber.stop()
        return len(started)

    def list_registered(self) -> dict[str, list[str]]:
        """Return the names of the classes and of the instances."""
        return {"classes": list(self._by_name), "instances": list(self._subscribers)}

    @property
    def active_count(self) -> int:
        """Number of started subscribers."""
        return len(self._started)

    def stats(self) -> dict[str, Any]:
        """Return the numbers of classes, instances and started subscribers, and the patterns of these."""
        return {
            "registered_classes": len(self._by_name),
            "registered_instances": len(self._subscribers),
            "active_subscribers": len(self._started),
            "subscriptions": [
                {"class": type(subscriber).__name__, "patterns": subscriber.subscriptions, "active": subscriber.active}
                for subscriber in self._started
            ],
        }

    def clear(self) -> None:
        """Stop and remove every subscriber."""
        super().clear()
        self._by_name.clear()

    def _start(self, made: Any, poller: EnginePoller) -> None:
        try:
            subscriber = made() if isinstance(made, type) else made
            subscriber.start(poller)
        except Exception:
            log.exception("the subscriber %r cannot be started", made)
        else:
            self._started.append(subscriber)
