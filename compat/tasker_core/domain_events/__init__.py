"""Events of the application, published by handlers and handled in the same process."""

from __future__ import annotations

from tasker.handlers.events.publisher import EventDeclaration, PublishContext, StepResult
from tasker_core.domain_events.context import StepEventContext
from tasker_core.domain_events.poller import DomainEventCallback, ErrorCallback, InProcessDomainEventPoller
from tasker_core.domain_events.publisher import BasePublisher, DefaultPublisher
from tasker_core.domain_events.registries import PublisherRegistry, SubscriberRegistry
from tasker_core.domain_events.subscriber import BaseSubscriber

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
