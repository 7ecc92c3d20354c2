"""Registries of the publishers and subscribers in this process."""

from __future__ import annotations

from typing import Any

from tasker.domain_events.poller import InProcessDomainEventPoller
from tasker.domain_events.publisher import BasePublisher, DefaultPublisher
from tasker.domain_events.subscriber import BaseSubscriber
from tasker.errors import UsageError
from tasker.registry.shared_instance import SharedInstance


class PublisherRegistry(SharedInstance):
    """Publishers by name. A frozen registry accepts no registrations."""

    def __init__(self) -> None:
        self._publishers: dict[str, BasePublisher] = {}
        self._default = DefaultPublisher()
        self._frozen = False

    @classmethod
    def reset(cls) -> None:
        """Discard the shared registry."""
        cls._forget_shared()

    def register(self, publisher: BasePublisher, name: str | None = None) -> None:
        """Register under `name`, or under the publisher's own name; a class is instantiated.

        Raises `UsageError` if the registry is frozen.
        """
        if self._frozen:
            raise UsageError("the publisher registry is frozen", hint="register before the worker starts")
        made = publisher() if isinstance(publisher, type) else publisher
        self._publishers[name or made.publisher_name] = made

    def get(self, name: str) -> BasePublisher | None:
        """Return the publisher of that name, or None."""
        return self._publishers.get(name)

    def get_or_default(self, name: str) -> BasePublisher:
        """Return the publisher of that name, or the default one."""
        return self._publishers.get(name, self._default)

    def validate_required(self, names: list[str]) -> list[str]:
        """Return those of the names that are not registered."""
        return [name for name in names if name not in self._publishers]

    def freeze(self) -> None:
        """Reject further registrations."""
        self._frozen = True

    def unfreeze(self) -> None:
        """Accept registrations again."""
        self._frozen = False

    @property
    def is_frozen(self) -> bool:
        """True between `freeze` and `unfreeze`."""
        return self._frozen

    def list_publishers(self) -> list[str]:
        """Return the names of the publishers, sorted."""
        return sorted(self._publishers)

    def clear(self) -> None:
        """Remove every publisher and unfreeze the registry."""
        self._publishers.clear()
        self._frozen = False


class SubscriberRegistry(SharedInstance):
    """Subscribers: classes until they are started, then instances."""

    def __init__(self) -> None:
        self._classes: list[type[BaseSubscriber]] = []
        self._subscribers: dict[str, BaseSubscriber] = {}

    @classmethod
    def reset(cls) -> None:
        """Stop every subscriber and discard the shared registry."""
        if (registry := cls._forget_shared()) is not None:
            registry.stop_all()

    def register(self, subscriber_class: type[BaseSubscriber]) -> None:
        """Register a class; `start_all` creates its instance."""
        if subscriber_class not in self._classes:
            self._classes.append(subscriber_class)

    def register_instance(self, subscriber: BaseSubscriber, name: str | None = None) -> None:
        """Register an instance under `name`, or under the name of its class."""
        self._subscribers = {**self._subscribers, name or type(subscriber).__name__: subscriber}

    def unregister_instance(self, subscriber: BaseSubscriber) -> None:
        """Stop and remove a subscriber that was registered as an instance."""
        subscriber.stop()
        self._subscribers = {name: each for name, each in self._subscribers.items() if each is not subscriber}

    def start_all(self, poller: InProcessDomainEventPoller) -> int:
        """Start every subscriber that is not active; return the number of started ones."""
        for cls in self._classes:
            if cls.__name__ not in self._subscribers:
                self.register_instance(cls())
        idle = [subscriber for subscriber in self._subscribers.values() if not subscriber.active]
        for subscriber in idle:
            subscriber.start(poller)
        return len(idle)

    def stop_all(self) -> int:
        """Stop every active subscriber; return the number of stopped ones."""
        active = [subscriber for subscriber in self._subscribers.values() if subscriber.active]
        for subscriber in active:
            subscriber.stop()
        return len(active)

    def list_registered(self) -> dict[str, list[str]]:
        """Return the patterns of each subscriber, by name."""
        waiting = {cls.__name__: list(cls.subscribes_to()) for cls in self._classes}
        return waiting | {name: subscriber.subscriptions for name, subscriber in self._subscribers.items()}

    @property
    def active_count(self) -> int:
        """Number of active subscribers."""
        return sum(subscriber.active for subscriber in self._subscribers.values())

    @property
    def failed(self) -> int:
        """Number of events whose handling failed."""
        return sum(subscriber.failed for subscriber in self._subscribers.values())

    def stats(self) -> dict[str, Any]:
        """Return `registered`, `active`, and the patterns of each subscriber."""
        listed = self.list_registered()
        return {"registered": len(listed), "active": self.active_count, "subscriptions": listed}

    def clear(self) -> None:
        """Stop and remove every subscriber."""
        self.stop_all()
        self._classes.clear()
        self._subscribers.clear()
