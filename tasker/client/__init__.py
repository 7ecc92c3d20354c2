"""Clients of Tasker for other programs.

`HttpClient` and `SyncHttpClient` call a Tasker server and cover all of its API. They need no database driver.

Names are imported lazily, so a program loads only what it uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tasker.lazy import names_of

if TYPE_CHECKING:
    from tasker.client.connection import Retries as Retries
    from tasker.client.http_client import HttpClient as HttpClient
    from tasker.client.responses import HealthResponse as HealthResponse
    from tasker.client.responses import PaginationInfo as PaginationInfo
    from tasker.client.responses import StepAuditResponse as StepAuditResponse
    from tasker.client.responses import StepResponse as StepResponse
    from tasker.client.responses import TaskListResponse as TaskListResponse
    from tasker.client.responses import TaskResponse as TaskResponse
    from tasker.client.sync_client import SyncHttpClient as SyncHttpClient
    from tasker.client.task_events import TaskEvent as TaskEvent

__all__ = [
    "HealthResponse",
    "HttpClient",
    "PaginationInfo",
    "Retries",
    "StepAuditResponse",
    "StepResponse",
    "SyncHttpClient",
    "TaskEvent",
    "TaskListResponse",
    "TaskResponse",
]

__getattr__ = names_of(
    __name__,
    {
        "tasker.client.http_client": "HttpClient",
        "tasker.client.task_events": "TaskEvent",
        "tasker.client.connection": "Retries",
        "tasker.client.sync_client": "SyncHttpClient",
        "tasker.client.responses": (
            "HealthResponse PaginationInfo StepAuditResponse StepResponse TaskListResponse TaskResponse"
        ),
    },
)
