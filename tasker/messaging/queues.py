"""Names of queues and channels, and the mapping of queues to namespaces for all of Tasker."""

from __future__ import annotations

import re

from tasker.dataclasses import dataclass
from tasker.errors import InvalidQueueName
from tasker.settings.addresses import QUEUE_NAME_MAX, check_queue_name
from tasker.settings.queues import OrchestrationQueues

CHANNEL_PREFIX = "pgmq_message_ready"
CHANNEL_MAX_BYTES = 63
NAMESPACE_MAX = min(QUEUE_NAME_MAX - len("worker__queue"), CHANNEL_MAX_BYTES - len(f"{CHANNEL_PREFIX}."))
"""Maximum length of a namespace, 34 characters, so that its queue and channel names fit on every backend."""

_NAMESPACE = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
_WORKER_QUEUE = re.compile(r"worker_(.*)_queue", re.DOTALL)
_BARE_QUEUE = re.compile(r"([a-zA-Z][a-zA-Z0-9_]*)_queue", re.ASCII)


@dataclass(frozen=True, slots=True)
class QueueNames:
    """Names of the orchestration queues, which are configurable, and of the worker queues of namespaces."""

    task_requests: str = OrchestrationQueues.task_requests
    step_results: str = OrchestrationQueues.step_results
    task_finalizations: str = OrchestrationQueues.task_finalizations

    def __post_init__(self) -> None:
        for queue in self.orchestration():
            check_queue_name(queue)

    def orchestration(self) -> tuple[str, str, str]:
        """Return the three queues that orchestrators read."""
        return (self.task_requests, self.step_results, self.task_finalizations)

    def step_queue(self, namespace: str) -> str:
        """Return the worker queue of a namespace; raises `InvalidQueueName` if the namespace cannot have one."""
        return f"worker_{check_namespace(namespace)}_queue"


def namespace_of(queue: str) -> str:
    """Return the namespace of a queue name; the backends' SQL follows the same rules.

    `orchestration...` is `orchestration`, `worker_X_queue` is X (an empty X is `worker`), `X_queue` is X, any other
    name belongs to `default`.
    """
    if queue.startswith("orchestration"):
        return "orchestration"
    if match := _WORKER_QUEUE.fullmatch(queue):
        return match[1] or "worker"
    match = _BARE_QUEUE.fullmatch(queue)
    return match[1] if match else "default"


def ready_channel(namespace: str) -> str:
    """Return the channel that announces messages of a namespace. Quote it in LISTEN, because it contains a dot."""
    name = namespace if namespace == "orchestration" else check_namespace(namespace)
    return f"{CHANNEL_PREFIX}.{name}"


def check_namespace(namespace: str) -> str:
    """The namespace itself, when queues and channels can be named after it.

    Valid are 1 to 34 of `A-Z a-z 0-9 _ -`, without `--`, not beginning with `orchestration`, whose channel is reserved.
    Raises `InvalidQueueName` naming the broken rule.
    """
    problem = _namespace_problem(namespace)
    if problem:
        hint = f"use 1 to {NAMESPACE_MAX} letters, digits, '_' or single '-'"
        raise InvalidQueueName(f"namespace {namespace!r} {problem}", hint=hint)
    return namespace


def _namespace_problem(namespace: str) -> str | None:
    if not namespace:
        return "is empty"
    if len(namespace) > NAMESPACE_MAX:
        return f"has {len(namespace)} characters, {NAMESPACE_MAX} are possible"
    if not _NAMESPACE.fullmatch(namespace):
        return "contains a character that is not a letter, digit, '_' or '-'"
    if "--" in namespace:
        return "holds '--'"
    return "begins with 'orchestration', which is reserved" if namespace.startswith("orchestration") else None
