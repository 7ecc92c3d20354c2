"""Clients of Tasker for other programs.

`HttpClient` and `SyncHttpClient` call a Tasker server and cover all of its API. `TaskerClient` has the published
tasker-core names and works on a server or a database. All of them return the same types.

Names are imported lazily, so a program that uses HTTP only needs no database driver.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tasker.named import names_of

if TYPE_CHECKING:
    from tasker.client.http.client import HttpClient as HttpClient
    from tasker.client.http.events import TaskEvent as TaskEvent
    from tasker.client.http.retries import Retries as Retries
    from tasker.client.http.sync_client import SyncHttpClient as SyncHttpClient
    from tasker.client.published import TaskerClient as TaskerClient
    from tasker.client.published import disconnect as disconnect
    from tasker.client.responses import HealthResponse as HealthResponse
    from tasker.client.responses import PaginationInfo as PaginationInfo
    from tasker.client.responses import StepAuditResponse as StepAuditResponse
    from tasker.client.responses import StepResponse as StepResponse
    from tasker.client.responses import TaskListResponse as TaskListResponse
    from tasker.client.responses import TaskResponse as TaskResponse

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
    "TaskerClient",
    "disconnect",
]

__getattr__ = names_of(
    __name__,
    {
        "http.client": "HttpClient",
        "http.events": "TaskEvent",
        "http.retries": "Retries",
        "http.sync_client": "SyncHttpClient",
        "published": "TaskerClient disconnect",
        "responses": "HealthResponse PaginationInfo StepAuditResponse StepResponse TaskListResponse TaskResponse",
    },
)
