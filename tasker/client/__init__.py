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
    from tasker.client.sync_client import SyncHttpClient as SyncHttpClient
    from tasker.client.task_events import TaskEvent as TaskEvent
    from tasker.views.steps import Attempt as Attempt
    from tasker.views.steps import Step as Step
    from tasker.views.task_lists import Pagination as Pagination
    from tasker.views.tasks import Task as Task
    from tasker.views.tasks import TaskPage as TaskPage
    from tasker.views.tasks import TaskReport as TaskReport

__all__ = [
    "Attempt",
    "HealthResponse",
    "HttpClient",
    "Pagination",
    "Retries",
    "Step",
    "SyncHttpClient",
    "Task",
    "TaskEvent",
    "TaskPage",
    "TaskReport",
]

__getattr__ = names_of(
    __name__,
    {
        "tasker.client.http_client": "HttpClient",
        "tasker.client.task_events": "TaskEvent",
        "tasker.client.connection": "Retries",
        "tasker.client.sync_client": "SyncHttpClient",
        "tasker.client.responses": "HealthResponse",
        "tasker.views.steps": "Attempt Step",
        "tasker.views.task_lists": "Pagination",
        "tasker.views.tasks": "Task TaskPage TaskReport",
    },
)
