"""Blocking version of `HttpClient`, with the same methods."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self, TypeVar

from tasker.app.sync_wrapper import LoopThread, SyncWrapper, sync_iterator, sync_method, with_parameters_of
from tasker.client.http_client import HttpClient
from tasker.operations.analytics import AnalyticsOperations
from tasker.operations.approvals import ApprovalOperations
from tasker.operations.dead_letters import DeadLetterOperations
from tasker.operations.events import EventOperations
from tasker.operations.fleet import FleetOperations
from tasker.operations.operation import Operation, SyncCaller
from tasker.operations.schedules import ScheduleOperations
from tasker.operations.steps import StepOperations
from tasker.operations.tasks import TaskOperations
from tasker.operations.templates import TemplateOperations

R = TypeVar("R")


class SyncHttpClient(
    SyncCaller,
    AnalyticsOperations,
    ApprovalOperations,
    DeadLetterOperations,
    EventOperations,
    FleetOperations,
    ScheduleOperations,
    StepOperations,
    TaskOperations,
    TemplateOperations,
    SyncWrapper[HttpClient],
):
    """Blocking client of a Tasker server: `with SyncHttpClient("http://localhost:8080") as client:`.

    It takes the parameters of `HttpClient`. It also works in a notebook, where an event loop already runs.
    """

    @with_parameters_of(HttpClient)
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(LoopThread("tasker client"), HttpClient(*args, **options))
        self._loop.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections. Calling it twice is allowed."""
        if self._loop.running:
            self._loop.wait(self._original.close())
            self._loop.stop()

    def perform(self, operation: Operation[..., R], arguments: Mapping[str, Any]) -> R:
        """Perform the operation and wait for its answer."""
        return self._loop.wait(self._original.perform(operation, arguments))

    stream = sync_iterator(HttpClient.stream)
    stream_events = sync_iterator(HttpClient.stream_events)
    create_task = sync_method(HttpClient.create_task)
    create_tasks = sync_method(HttpClient.create_tasks)
    request_task = sync_method(HttpClient.request_task)
    get_task = sync_method(HttpClient.get_task)
    wait = sync_method(HttpClient.wait)
    list_task_steps = sync_method(HttpClient.list_task_steps)
    reset_step = sync_method(HttpClient.reset_step)
    resolve_step = sync_method(HttpClient.resolve_step)
    complete_step = sync_method(HttpClient.complete_step)
    get_template_graph = sync_method(HttpClient.get_template_graph)
    health_check = sync_method(HttpClient.health_check)
    detailed_health = sync_method(HttpClient.detailed_health)
    is_live = sync_method(HttpClient.is_live)
    is_ready = sync_method(HttpClient.is_ready)
    metrics = sync_method(HttpClient.metrics)
    configuration = sync_method(HttpClient.configuration)
    description = sync_method(HttpClient.description)
    list_tasks_briefly = sync_method(HttpClient.list_tasks_briefly)
    get_task_report = sync_method(HttpClient.get_task_report)
    get_task_history = sync_method(HttpClient.get_task_history)
