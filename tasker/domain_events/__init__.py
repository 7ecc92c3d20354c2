"""Domain events, published when steps finish."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tasker.named import names_of

if TYPE_CHECKING:
    from tasker.domain_events.declaration import EventDeclaration, PublishContext, StepEventContext, StepResult
    from tasker.domain_events.event_bus import EventHandler, InProcessEventBus
    from tasker.domain_events.poller import DomainEventCallback, ErrorCallback, InProcessDomainEventPoller
    from tasker.domain_events.publisher import BasePublisher, DefaultPublisher
    from tasker.domain_events.publishing import publish_domain_event
    from tasker.domain_events.reference import LoggingSubscriber, MetricsSubscriber
    from tasker.domain_events.registries import PublisherRegistry, SubscriberRegistry
    from tasker.domain_events.subscriber import BaseSubscriber

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
        "declaration": "EventDeclaration PublishContext StepEventContext StepResult",
        "event_bus": "EventHandler InProcessEventBus",
        "poller": "DomainEventCallback ErrorCallback InProcessDomainEventPoller",
        "publisher": "BasePublisher DefaultPublisher",
        "publishing": "publish_domain_event",
        "reference": "LoggingSubscriber MetricsSubscriber",
        "registries": "PublisherRegistry SubscriberRegistry",
        "subscriber": "BaseSubscriber",
    },
)
