"""Domain events, published when steps finish."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tasker.lazy import names_of

if TYPE_CHECKING:
    from tasker.handlers.events.poller import DomainEventCallback, ErrorCallback, InProcessDomainEventPoller
    from tasker.handlers.events.publisher import (
        BasePublisher,
        DefaultPublisher,
        EventDeclaration,
        PublishContext,
        StepEventContext,
        StepResult,
        publish_domain_event,
    )
    from tasker.handlers.events.registries import EventHandler, InProcessEventBus, PublisherRegistry, SubscriberRegistry
    from tasker.handlers.events.subscriber import BaseSubscriber, LoggingSubscriber, MetricsSubscriber

__all__ = [
    "BasePublisher",
    "BaseSubscriber",
    "DefaultPublisher",
    "DomainEventCallback",
    "ErrorCallback",
    "EventDeclaration",
    "EventHandler",
    "InProcessDomainEventPoller",
    "InProcessEventBus",
    "LoggingSubscriber",
    "MetricsSubscriber",
    "PublishContext",
    "PublisherRegistry",
    "StepEventContext",
    "StepResult",
    "SubscriberRegistry",
    "publish_domain_event",
]

__getattr__ = names_of(
    __name__,
    {
        "tasker.handlers.events.publisher": (
            "EventDeclaration PublishContext StepEventContext StepResult BasePublisher "
            "DefaultPublisher publish_domain_event"
        ),
        "tasker.handlers.events.registries": "EventHandler InProcessEventBus PublisherRegistry SubscriberRegistry",
        "tasker.handlers.events.poller": "DomainEventCallback ErrorCallback InProcessDomainEventPoller",
        "tasker.handlers.events.subscriber": "LoggingSubscriber MetricsSubscriber BaseSubscriber",
    },
)
