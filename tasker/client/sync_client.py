"""Blocking version of `HttpClient`, with the same methods."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from types import TracebackType
from typing import Any, Self, TypeVar

from tasker.app.sync_wrapper import LoopThread, SyncWrapper, sync_method, with_parameters_of
from tasker.client.http_client import HttpClient
from tasker.client.task_events import TaskEvent

T = TypeVar("T")


class SyncHttpClient(SyncWrapper[HttpClient]):
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

    def stream(self, task_uuid: str, after: str | None = None) -> Iterator[TaskEvent]:
        """Iterate over the events of a task; see `HttpClient.stream`."""
        return self._each(self._original.stream(task_uuid, after))

    def stream_events(self, **which: Any) -> Iterator[dict[str, Any]]:
        """Iterate over domain events; see `HttpClient.stream_events`."""
        return self._each(self._original.stream_events(**which))

    def _each(self, events: AsyncGenerator[T]) -> Iterator[T]:
        """Iterate over a stream; it is closed with this iterator or with the client."""
        try:
            while (event := self._loop.wait(_next(events))) is not None:
                yield event
        finally:
            if self._loop.running:
                self._loop.wait(events.aclose())

    list_events = sync_method(HttpClient.list_events)
    list_event_subscribers = sync_method(HttpClient.list_event_subscribers)
    replay_events = sync_method(HttpClient.replay_events)
    create_task = sync_method(HttpClient.create_task)
    create_tasks = sync_method(HttpClient.create_tasks)
    request_task = sync_method(HttpClient.request_task)
    get_task = sync_method(HttpClient.get_task)
    wait = sync_method(HttpClient.wait)
    list_tasks = sync_method(HttpClient.list_tasks)
    cancel_task = sync_method(HttpClient.cancel_task)
    get_task_context = sync_method(HttpClient.get_task_context)
    get_task_details = sync_method(HttpClient.get_task_details)
    explain_task = sync_method(HttpClient.explain_task)
    list_task_steps = sync_method(HttpClient.list_task_steps)
    list_step_data = sync_method(HttpClient.list_step_data)
    get_step_data = sync_method(HttpClient.get_step_data)
    get_step = sync_method(HttpClient.get_step)
    get_step_inputs = sync_method(HttpClient.get_step_inputs)
    get_step_audit_history = sync_method(HttpClient.get_step_audit_history)
    reset_step = sync_method(HttpClient.reset_step)
    resolve_step = sync_method(HttpClient.resolve_step)
    complete_step = sync_method(HttpClient.complete_step)
    list_templates = sync_method(HttpClient.list_templates)
    get_template = sync_method(HttpClient.get_template)
    get_template_graph = sync_method(HttpClient.get_template_graph)
    validate_template = sync_method(HttpClient.validate_template)
    register_templates = sync_method(HttpClient.register_templates)
    list_schedules = sync_method(HttpClient.list_schedules)
    get_schedule = sync_method(HttpClient.get_schedule)
    list_fires = sync_method(HttpClient.list_fires)
    list_upcoming_fires = sync_method(HttpClient.list_upcoming_fires)
    create_schedule = sync_method(HttpClient.create_schedule)
    pause_schedule = sync_method(HttpClient.pause_schedule)
    resume_schedule = sync_method(HttpClient.resume_schedule)
    delete_schedule = sync_method(HttpClient.delete_schedule)
    trigger_schedule = sync_method(HttpClient.trigger_schedule)
    backfill_schedule = sync_method(HttpClient.backfill_schedule)
    list_workers = sync_method(HttpClient.list_workers)
    list_handlers = sync_method(HttpClient.list_handlers)
    list_queues = sync_method(HttpClient.list_queues)
    list_limits = sync_method(HttpClient.list_limits)
    list_pauses = sync_method(HttpClient.list_pauses)
    pause = sync_method(HttpClient.pause)
    resume = sync_method(HttpClient.resume)
    performance = sync_method(HttpClient.performance)
    template_history = sync_method(HttpClient.template_history)
    bottlenecks = sync_method(HttpClient.bottlenecks)
    scaling = sync_method(HttpClient.scaling)
    health_check = sync_method(HttpClient.health_check)
    detailed_health = sync_method(HttpClient.detailed_health)
    is_live = sync_method(HttpClient.is_live)
    is_ready = sync_method(HttpClient.is_ready)
    metrics = sync_method(HttpClient.metrics)
    configuration = sync_method(HttpClient.configuration)
    description = sync_method(HttpClient.description)
    list_dead_letters = sync_method(HttpClient.list_dead_letters)
    get_dead_letter = sync_method(HttpClient.get_dead_letter)
    update_dead_letter = sync_method(HttpClient.update_dead_letter)
    retry_dead_letter = sync_method(HttpClient.retry_dead_letter)
    dead_letter_stats = sync_method(HttpClient.dead_letter_stats)
    investigation_queue = sync_method(HttpClient.investigation_queue)
    staleness = sync_method(HttpClient.staleness)
    list_tasks_briefly = sync_method(HttpClient.list_tasks_briefly)
    list_refused_messages = sync_method(HttpClient.list_refused_messages)
    list_operator_actions = sync_method(HttpClient.list_operator_actions)
    list_identifiers = sync_method(HttpClient.list_identifiers)
    get_task_report = sync_method(HttpClient.get_task_report)
    get_task_history = sync_method(HttpClient.get_task_history)
    get_task_progress = sync_method(HttpClient.get_task_progress)
    get_task_logs = sync_method(HttpClient.get_task_logs)
    get_task_template = sync_method(HttpClient.get_task_template)
    get_task_audit = sync_method(HttpClient.get_task_audit)
    retry_task = sync_method(HttpClient.retry_task)
    rerun_task = sync_method(HttpClient.rerun_task)
    overview = sync_method(HttpClient.overview)
    doctor = sync_method(HttpClient.doctor)
    get_dead_letter_entry = sync_method(HttpClient.get_dead_letter_entry)
    dead_letter_groups = sync_method(HttpClient.dead_letter_groups)
    open_dead_letter = sync_method(HttpClient.open_dead_letter)
    list_replays = sync_method(HttpClient.list_replays)
    get_replay = sync_method(HttpClient.get_replay)
    begin_replay = sync_method(HttpClient.begin_replay)
    steer_replay = sync_method(HttpClient.steer_replay)


async def _next(events: AsyncGenerator[T, None]) -> T | None:
    async for event in events:
        return event
    return None
