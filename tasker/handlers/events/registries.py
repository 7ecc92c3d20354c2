"""Publishers and subscribers of this process, their discovery, and the bus."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Awaitable, Callable, Iterable
from fnmatch import fnmatchcase
from types import ModuleType
from typing import Any, ClassVar, Self, TypeAlias

from tasker.errors import UsageError
from tasker.handlers.events.poller import InProcessDomainEventPoller
from tasker.handlers.events.publisher import BasePublisher, DefaultPublisher
from tasker.handlers.events.subscriber import BaseSubscriber


class SharedInstance:
    """Class of which a program may create several instances; `instance()` creates and returns the shared one."""

    _instance: ClassVar[Any] = None
    _lock: ClassVar[threading.Lock]

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        cls._instance, cls._lock = None, threading.Lock()

    @classmethod
    def instance(cls) -> Self:
        """Return the shared instance."""
        return cls._shared(cls)

    @classmethod
    def _shared(cls, make: Callable[[], Self]) -> Self:
        with cls._lock:
            if cls._instance is None:
                cls._instance = make()
            instance: Self = cls._instance
            return instance

    @classmethod
    def _forget_shared(cls) -> Self | None:
        """Discard the shared instance and return it, or None; the next `instance()` creates a new one."""
        with cls._lock:
            instance: Self | None = cls._instance
            cls._instance = None
            return instance


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
        self._subscribers = {
            name: registered for name, registered in self._subscribers.items() if registered is not subscriber
        }

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


def register_from(module: ModuleType) -> None:
    """Register the concrete classes that a module defines; this finds those in handler files."""
    classes = [
        value for value in vars(module).values() if inspect.isclass(value) and value.__module__ == module.__name__
    ]
    register(cls for cls in classes if issubclass(cls, (BasePublisher, BaseSubscriber)) and not inspect.isabstract(cls))


def register(candidates: Iterable[Any]) -> None:
    """Register publishers and subscribers, classes or instances. Raises `UsageError` for any other value."""
    publishers, subscribers = PublisherRegistry.instance(), SubscriberRegistry.instance()
    for candidate in candidates:
        cls = candidate if inspect.isclass(candidate) else type(candidate)
        if issubclass(cls, BasePublisher) and not issubclass(cls, DefaultPublisher):
            publishers.register(candidate)
        elif issubclass(cls, BaseSubscriber):
            subscribers.register(cls) if candidate is cls else subscribers.register_instance(candidate)
        else:
            hint = "give classes or instances of tasker.domain_events.BasePublisher and BaseSubscriber"
            raise UsageError(f"{candidate!r} is neither a publisher nor a subscriber", hint=hint)


EventHandler: TypeAlias = Callable[[dict[str, Any]], Awaitable[None] | None]


class InProcessEventBus:
    """Delivers `fast` and `broadcast` events of this process to functions, as to a `BaseSubscriber`.

    All instances are the same bus: the subscriptions are stored in the `SubscriberRegistry` of the process.
    """

    def subscribe(self, pattern: str, handler: EventHandler) -> Callable[[], None]:
        """Call `handler`, plain or async, with every event whose name matches (`*`, `payment.*`, `order.completed`).

        Each subscription has a thread and a queue of its own. Returns a function that ends the subscription.
        """
        registry = SubscriberRegistry.instance()
        subscriber = _FunctionSubscriber(pattern, handler)
        registry.register_instance(subscriber, f"{subscriber.subscriber_name} {id(subscriber)}")
        return lambda: registry.unregister_instance(subscriber)


class _FunctionSubscriber(BaseSubscriber):
    """One subscription of a function."""

    def __init__(self, pattern: str, handler: EventHandler) -> None:
        super().__init__()
        self._pattern, self._handler = pattern, handler

    @classmethod
    def subscribes_to(cls) -> list[str]:
        return []  # each instance has its own pattern

    @property
    def subscriber_name(self) -> str:
        return getattr(self._handler, "__qualname__", type(self._handler).__name__)

    @property
    def subscriptions(self) -> list[str]:
        return [self._pattern]

    def matches(self, event_name: str) -> bool:
        return fnmatchcase(event_name, self._pattern)

    def handle(self, event: dict[str, Any]) -> Awaitable[None] | None:
        return self._handler(event)
