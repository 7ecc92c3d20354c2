"""Discovery of custom publishers and subscribers, in handler modules and in plugins."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from types import ModuleType
from typing import Any

from tasker.domain_events.publisher import BasePublisher, DefaultPublisher
from tasker.domain_events.registries import PublisherRegistry, SubscriberRegistry
from tasker.domain_events.subscriber import BaseSubscriber
from tasker.errors import UsageError


def register_from(module: ModuleType) -> None:
    """Register the concrete classes that a module defines; this finds those in handler files."""
    own = [each for each in vars(module).values() if inspect.isclass(each) and each.__module__ == module.__name__]
    register(each for each in own if issubclass(each, (BasePublisher, BaseSubscriber)) and not inspect.isabstract(each))


def register(found: Iterable[Any]) -> None:
    """Register publishers and subscribers, classes or instances. Raises `UsageError` for any other value."""
    publishers, subscribers = PublisherRegistry.instance(), SubscriberRegistry.instance()
    for each in found:
        cls = each if inspect.isclass(each) else type(each)
        if issubclass(cls, BasePublisher) and not issubclass(cls, DefaultPublisher):
            publishers.register(each)
        elif issubclass(cls, BaseSubscriber):
            subscribers.register(cls) if each is cls else subscribers.register_instance(each)
        else:
            hint = "give classes or instances of tasker.domain_events.BasePublisher and BaseSubscriber"
            raise UsageError(f"{each!r} is neither a publisher nor a subscriber", hint=hint)
