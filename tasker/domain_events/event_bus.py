"""Functions as subscribers to the events of this process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from fnmatch import fnmatchcase
from typing import Any, TypeAlias

from tasker.domain_events.registries import SubscriberRegistry
from tasker.domain_events.subscriber import BaseSubscriber

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
