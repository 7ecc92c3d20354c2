"""Registries of the publishers and subscribers in this process."""

from __future__ import annotations

import logging
from typing import Any

from tasker.handlers.events.poller import InProcessDomainEventPoller as EnginePoller
from tasker.handlers.events.registries import PublisherRegistry as EnginePublishers
from tasker.handlers.events.registries import SubscriberRegistry as EngineSubscribers
from tasker_core.domain_events.publisher import BasePublisher, DefaultPublisher
from tasker_core.domain_events.subscriber import BaseSubscriber

log = logging.getLogger("tasker.domain_events")


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
