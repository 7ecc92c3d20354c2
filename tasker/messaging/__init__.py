"""Messaging: backends by name, queue names, and the service that combines both."""

from __future__ import annotations

from tasker.installed import installed_backends
from tasker.messaging.hints import PoisonMessage, StepHint
from tasker.messaging.queues import QueueNames, check_namespace, namespace_of, ready_channel
from tasker.messaging.registry import load_backend
from tasker.messaging.service import MessagingService

__all__ = [
    "MessagingService",
    "PoisonMessage",
    "QueueNames",
    "StepHint",
    "check_namespace",
    "installed_backends",
    "load_backend",
    "namespace_of",
    "ready_channel",
]
