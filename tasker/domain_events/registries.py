"""Who publishes and who subscribes in this process."""

from __future__ import annotations

from typing import Any

from tasker.domain_events.poller import InProcessDomainEventPoller
from tasker.domain_events.publisher import BasePublisher, DefaultPublisher
from tasker.domain_events.subscriber import BaseSubscriber
from tasker.errors import UsageError
from tasker.registry.shared_instance import SharedInstance


class PublisherRegistry(SharedInstance):
    """Publishers by name. Frozen, it takes no more."""

    def __init__(self) -> None:
        self._publishers: dict[str, BasePublisher] = {}
        self._default = DefaultPublisher()
        self._frozen = False

    @classmethod
    def reset(cls) -> None:
        """Forget the shared registry."""
        cls._forget_shared()

    def register(self, publisher: BasePublisher, name: str | None = None) -> None:
        """Register under `name`, or under the publisher's own name; a class is instantiated.

        Raises `UsageError` when the registry is frozen.
        """
        if self._frozen:
            raise UsageError("the publisher registry is frozen", hint="register before the worker starts")
        made = publisher() if isinstance(publisher, type) else publisher
        self._publishers[name or made.publisher_name] = made

    def get(self, name: str) -> BasePublisher | None:
        """The publisher of that name."""
        return self._publishers.get(name)

    def get_or_default(self, name: str) -> BasePublisher:
        """The publisher of that name, or the default one."""
        return self._publishers.get(name, self._default)

    def validate_required(self, names: list[str]) -> list[str]:
        """Those of the names that nobody registered."""
        return [name for name in names if name not in self._publishers]

    def freeze(self) -> None:
        """Take no more registrations."""
        self._frozen = True

    def unfreeze(self) -> None:
        """Take registrations again."""
        self._frozen = False

    @property
    def is_frozen(self) -> bool:
        """True between `freeze` and `unfreeze`."""
        return self._frozen

    def list_publishers(self) -> list[str]:
        """The names, sorted."""
        return sorted(self._publishers)

    def clear(self) -> None:
        """Forget every publisher, and thaw."""
        self._publishers.clear()
        self._frozen = False


class SubscriberRegistry(SharedInstance):
    """Subscribers: classes until they are started, then instances."""

    def __init__(self) -> None:
        self._classes: list[type[BaseSubscriber]] = []
        self._subscribers: dict[str, BaseSubscriber] = {}

    @classmethod
    def reset(cls) -> None:
        """Stop every subscriber and forget the shared registry."""
        if (registry := cls._forget_shared()) is not None:
            registry.stop_all()

    def register(self, subscriber_class: type[BaseSubscriber]) -> None:
        """Register a class; `start_all` makes its instance."""
        if subscriber_class not in self._classes:
            self._classes.append(subscriber_class)

    def register_instance(self, subscriber: BaseSubscriber, name: str | None = None) -> None:
        """Register a ready subscriber, under its class's name unless given another."""
        self._subscribers = {**self._subscribers, name or type(subscriber).__name__: subscriber}

    def unregister_instance(self, subscriber: BaseSubscriber) -> None:
        """Stop a subscriber that was registered as an instance, and forget it."""
        subscriber.stop()
        self._subscribers = {name: each for name, each in self._subscribers.items() if each is not subscriber}

    def start_all(self, poller: InProcessDomainEventPoller) -> int:
        """Start every subscriber that is not active; how many were started."""
        for cls in self._classes:
            if cls.__name__ not in self._subscribers:
                self.register_instance(cls())
        idle = [subscriber for subscriber in self._subscribers.values() if not subscriber.active]
        for subscriber in idle:
            subscriber.start(poller)
        return len(idle)

    def stop_all(self) -> int:
        """Stop every active subscriber; how many were stopped."""
        active = [subscriber for subscriber in self._subscribers.values() if subscriber.active]
        for subscriber in active:
            subscriber.stop()
        return len(active)

    def list_registered(self) -> dict[str, list[str]]:
        """The patterns of each subscriber, by name."""
        waiting = {cls.__name__: list(cls.subscribes_to()) for cls in self._classes}
        return waiting | {name: subscriber.subscriptions for name, subscriber in self._subscribers.items()}

    @property
    def active_count(self) -> int:
        """How many are active."""
        return sum(subscriber.active for subscriber in self._subscribers.values())

    @property
    def failed(self) -> int:
        """How many events subscribers could not handle."""
        return sum(subscriber.failed for subscriber in self._subscribers.values())

    def stats(self) -> dict[str, Any]:
        """`registered`, `active`, and the patterns of each."""
        listed = self.list_registered()
        return {"registered": len(listed), "active": self.active_count, "subscriptions": listed}

    def clear(self) -> None:
        """Stop and forget every subscriber."""
        self.stop_all()
        self._classes.clear()
        self._subscribers.clear()
