"""Vocabulary of permissions in tokens and configuration.

A word is `RESOURCE:ACTION`, `RESOURCE:*`, or `*` for everything; `RESOURCE:ACTION:NAMESPACE` and `RESOURCE:*:NAMESPACE`
permit the same in one namespace only. Words `approvals:NAME` are named by templates (`from: permissions`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum

from tasker.dataclasses import dataclass

EVERYTHING = "*"
_WORD = re.compile(r"(?P<resource>[a-z]+):(?P<action>[a-z_]+|\*)(?::(?P<namespace>[^:\s]+))?")


class Permission(StrEnum):
    """Permissions that can be granted."""

    TASKS_CREATE = "tasks:create"
    TASKS_READ = "tasks:read"
    TASKS_LIST = "tasks:list"
    TASKS_CANCEL = "tasks:cancel"
    TASKS_CONTEXT_READ = "tasks:context_read"
    TASKS_VIEWS_CHANGE = "tasks:views_change"
    STEPS_READ = "steps:read"
    STEPS_RESOLVE = "steps:resolve"
    DLQ_READ = "dlq:read"
    DLQ_UPDATE = "dlq:update"
    DLQ_STATS = "dlq:stats"
    TEMPLATES_READ = "templates:read"
    TEMPLATES_VALIDATE = "templates:validate"
    TEMPLATES_REGISTER = "templates:register"
    EVENTS_SEND = "events:send"
    APPROVALS_DECIDE = "approvals:decide"
    APPROVALS_LINK = "approvals:link"
    SCHEDULES_READ = "schedules:read"
    SCHEDULES_CHANGE = "schedules:change"
    SYSTEM_CONFIG_READ = "system:config_read"
    SYSTEM_HANDLERS_READ = "system:handlers_read"
    SYSTEM_ANALYTICS_READ = "system:analytics_read"
    SYSTEM_PAUSES_READ = "system:pauses_read"
    SYSTEM_PAUSES_CHANGE = "system:pauses_change"
    SYSTEM_ACTIONS_READ = "system:actions_read"
    DATA_READ_SENSITIVE = "data:read_sensitive"
    WORKER_CONFIG_READ = "worker:config_read"
    WORKER_TEMPLATES_READ = "worker:templates_read"


MEANINGS = {
    Permission.TASKS_CREATE: "create tasks",
    Permission.TASKS_READ: "read one task: its state, history, events, explanation",
    Permission.TASKS_LIST: "list tasks",
    Permission.TASKS_CANCEL: "cancel tasks",
    Permission.TASKS_CONTEXT_READ: "read only the input of a task",
    Permission.TASKS_VIEWS_CHANGE: "save and remove shared views of the task list",
    Permission.STEPS_READ: "read steps with their results and audit",
    Permission.STEPS_RESOLVE: "reset, resolve and complete steps",
    Permission.DLQ_READ: "read dead letters",
    Permission.DLQ_UPDATE: "record the findings about a dead letter",
    Permission.DLQ_STATS: "read counts of dead letters",
    Permission.TEMPLATES_READ: "read templates",
    Permission.TEMPLATES_VALIDATE: "check whether workers have a template's handlers",
    Permission.TEMPLATES_REGISTER: "register templates",
    Permission.EVENTS_SEND: "send events to steps that wait for them",
    Permission.APPROVALS_DECIDE: "list, approve and reject what waits for the caller",
    Permission.APPROVALS_LINK: "make signed links with which others decide",
    Permission.SCHEDULES_READ: "read schedules and their fires",
    Permission.SCHEDULES_CHANGE: "create, pause, trigger, backfill and delete schedules",
    Permission.SYSTEM_CONFIG_READ: "read the configuration of a server",
    Permission.SYSTEM_HANDLERS_READ: "list workers and their handlers",
    Permission.SYSTEM_ANALYTICS_READ: "read rates, bottlenecks and queues",
    Permission.SYSTEM_PAUSES_READ: "list pauses",
    Permission.SYSTEM_PAUSES_CHANGE: "pause and resume",
    Permission.SYSTEM_ACTIONS_READ: "read the audit log of operator actions",
    Permission.DATA_READ_SENSITIVE: "read values marked x-sensitive in a schema, and quarantined messages",
    Permission.WORKER_CONFIG_READ: "read the configuration of a worker",
    Permission.WORKER_TEMPLATES_READ: "read the templates of a worker",
}
OF_TEMPLATES = "approvals"
"""Resource whose further actions are names that templates give: `approvals:finance`."""
RESOURCES = frozenset(permission.partition(":")[0] for permission in Permission)


@dataclass(frozen=True, slots=True)
class Grant:
    """Permission or group of permissions, limited to `namespace` if there is one."""

    word: str
    namespace: str | None = None

    @classmethod
    def of(cls, text: str) -> Grant:
        """Parse a grant. Raises `ValueError` for words that are not in the vocabulary."""
        if text == EVERYTHING:
            return cls(EVERYTHING)
        match = _WORD.fullmatch(text)
        if match is None or match["resource"] not in RESOURCES:
            raise ValueError(text)
        word = f"{match['resource']}:{match['action']}"
        if match["action"] != "*" and match["resource"] != OF_TEMPLATES:
            Permission(word)
        return cls(word, match["namespace"])

    def covers(self, permission: Permission) -> bool:
        """Return whether the grant includes the permission in at least one namespace."""
        return self.word in (EVERYTHING, permission, f"{permission.partition(':')[0]}:*")


def grants_of(texts: Iterable[str]) -> tuple[frozenset[Grant], list[str]]:
    """Parse texts; return the grants, and the invalid texts in their order."""
    known: set[Grant] = set()
    unknown: list[str] = []
    for text in texts:
        try:
            known.add(Grant.of(text))
        except ValueError:
            unknown.append(text)
    return frozenset(known), unknown
