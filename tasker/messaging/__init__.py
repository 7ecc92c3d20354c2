"""The port that backends implement, the service in front of it, queue names and messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tasker.lazy import names_of

if TYPE_CHECKING:
    from tasker.installed import installed_backends as installed_backends
    from tasker.messaging.backends import load_backend as load_backend
    from tasker.messaging.messages import PoisonMessage as PoisonMessage
    from tasker.messaging.messages import StepHint as StepHint
    from tasker.messaging.queues import QueueNames as QueueNames
    from tasker.messaging.queues import check_namespace as check_namespace
    from tasker.messaging.queues import namespace_of as namespace_of
    from tasker.messaging.queues import ready_channel as ready_channel
    from tasker.messaging.service import MessagingService as MessagingService

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

__getattr__ = names_of(
    __name__,
    {
        "tasker.installed": "installed_backends",
        "tasker.messaging.backends": "load_backend",
        "tasker.messaging.messages": "PoisonMessage StepHint",
        "tasker.messaging.queues": "QueueNames check_namespace namespace_of ready_channel",
        "tasker.messaging.service": "MessagingService",
    },
)
