"""Calls of the published client on a server, over connections shared by all clients of the process."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import replace
from typing import Any

from tasker.app.sync_wrapper import LoopThread, SyncWrapper, sync_method
from tasker.client.calls.server import ServerStateCalls
from tasker.client.calls.steps import StepCalls
from tasker.client.calls.tasks import TaskCalls
from tasker.client.connection import HttpConnection
from tasker.client.responses import HealthResponse
from tasker.client.servers import ServerAddress
from tasker.errors import UsageError
from tasker.views.tasks import TaskPage
from tasker_core._runtime.client import PerProcess
from tasker_core._runtime.responses import (
    StepAuditResponse,
    StepResponse,
    TaskListResponse,
    TaskResponse,
    response,
)

_shared = PerProcess[dict[ServerAddress, tuple[LoopThread, HttpConnection]]](dict)


MOST_LISTED = 500
"""Maximum number of tasks of one list."""


class _Calls(TaskCalls, StepCalls, ServerStateCalls):
    def __init__(self, connection: HttpConnection, initiator: str, source_system: str) -> None:
        self.connection, self.initiator, self.source_system = connection, initiator, source_system


class _PublishedCalls:
    """Published calls: those of `HttpClient`, with the published answers."""

    def __init__(self, connection: HttpConnection, initiator: str, source_system: str) -> None:
        self._calls = _Calls(connection, initiator, source_system)

    async def create_task(self, /, name: str, **options: Any) -> TaskResponse:
        """Create a task from a registered template."""
        return response(TaskResponse, await self._calls.create_task(name, **options))

    async def get_task(self, task_uuid: str) -> TaskResponse:
        """Return the task with its steps."""
        return response(TaskResponse, await self._calls.get_task(task_uuid))

    async def list_tasks(
        self, *, limit: int = 50, offset: int = 0, namespace: str | None = None, status: str | None = None
    ) -> TaskListResponse:
        """Return a page of tasks as from a database, without a cursor: these clients take none."""
        _check_page(limit, offset)
        first, cut = divmod(offset, limit)

        def page_of(number: int) -> Awaitable[TaskPage]:
            return self._calls.list_tasks(namespace=namespace, status=status, per_page=limit, page=number)

        pages = [await page_of(first)]
        if cut and pages[0].pagination.has_next:  # an offset inside a page needs two pages
            pages.append(
                await self._calls.list_tasks(namespace=namespace, status=status, per_page=limit, page=first + 1)
            )
        tasks = [task for page in pages for task in page.tasks][cut : cut + limit]
        pagination = replace(pages[0].pagination, next_cursor=None)
        if cut:
            more = offset + limit < (pagination.total_count or 0)
            pagination = replace(pagination, has_next=more, has_previous=True)
        return response(TaskListResponse, TaskPage(tasks, pagination))

    async def cancel_task(self, task_uuid: str) -> dict[str, Any]:
        """Cancel a task."""
        done = await self._calls.cancel_task(task_uuid)
        return {"task_uuid": done.task_uuid, "status": done.status, "previous_status": done.previous_status}

    async def list_task_steps(self, task_uuid: str) -> list[StepResponse]:
        """Return the task's steps in topological order."""
        return [response(StepResponse, step) for step in await self._calls.list_task_steps(task_uuid)]

    async def get_step(self, task_uuid: str, step_uuid: str) -> StepResponse:
        """Return one step."""
        return response(StepResponse, await self._calls.get_step(task_uuid, step_uuid))

    async def get_step_audit_history(self, task_uuid: str, step_uuid: str) -> list[StepAuditResponse]:
        """Return the audit records of the stored results of a step."""
        attempts = await self._calls.get_step_audit_history(task_uuid, step_uuid)
        return [response(StepAuditResponse, attempt) for attempt in attempts]

    async def health_check(self) -> HealthResponse:
        """Return whether database and messaging respond."""
        return await self._calls.health_check()


def _check_page(limit: int, offset: int) -> None:
    if not 1 <= limit <= MOST_LISTED:
        raise UsageError(f"limit: expected 1 to {MOST_LISTED}, got {limit}", hint="change limit")
    if offset < 0:
        raise UsageError(f"offset: expected 0 or more, got {offset}", hint="change offset")


class ServerCalls(SyncWrapper[_PublishedCalls]):
    """Calls of `tasker_core._runtime.client.DatabaseCalls`, sent to a server. They raise the errors of `HttpClient`."""

    def __init__(self, server: ServerAddress, initiator: str, source_system: str) -> None:
        loop, connection = _connected(server)
        super().__init__(loop, _PublishedCalls(connection, initiator, source_system))

    create_task = sync_method(_PublishedCalls.create_task)
    get_task = sync_method(_PublishedCalls.get_task)
    list_tasks = sync_method(_PublishedCalls.list_tasks)
    cancel_task = sync_method(_PublishedCalls.cancel_task)
    list_task_steps = sync_method(_PublishedCalls.list_task_steps)
    get_step = sync_method(_PublishedCalls.get_step)
    get_step_audit_history = sync_method(_PublishedCalls.get_step_audit_history)
    health_check = sync_method(_PublishedCalls.health_check)


def disconnect() -> None:
    """Close the shared connections; the next call opens one again."""
    with _shared.lock:
        connections = list(_shared.value.values())
        _shared.value.clear()
    for loop, connection in connections:
        loop.wait(connection.close())
        loop.stop()


def _connected(server: ServerAddress) -> tuple[LoopThread, HttpConnection]:
    with _shared.lock:
        if server not in _shared.value:
            loop = LoopThread("tasker client")
            loop.start()
            _shared.value[server] = (loop, HttpConnection(server))
        return _shared.value[server]
