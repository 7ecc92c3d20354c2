"""`HttpClient` for programs that are not asynchronous: the same methods, each of which waits."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from types import TracebackType
from typing import Any, Self, TypeVar

from tasker.app.embedded.loop_thread import LoopThread
from tasker.app.embedded.twin import Twin, waiting, with_parameters_of
from tasker.client.http.client import HttpClient
from tasker.client.http.events import TaskEvent

T = TypeVar("T")


class SyncHttpClient(Twin[HttpClient]):
    """Asks a Tasker server. Use it as `with SyncHttpClient("http://localhost:8080") as client:`; parameters as
    `HttpClient`. It works in a notebook as well, where a loop runs already."""

    @with_parameters_of(HttpClient)
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(LoopThread("tasker client"), HttpClient(*args, **options))
        self._loop.start()

    def __enter__(self) -> Self:
        """Nothing is asked yet: the first request connects."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the connections."""
        self.close()

    def close(self) -> None:
        """End the connections. May be called twice."""
        if self._loop.running:
            self._loop.wait(self._original.close())
            self._loop.stop()

    def stream(self, task_uuid: str, after: str | None = None) -> Iterator[TaskEvent]:
        """As `HttpClient.stream`."""
        return self._each(self._original.stream(task_uuid, after))

    def stream_events(self, **which: Any) -> Iterator[dict[str, Any]]:
        """As `HttpClient.stream_events`."""
        return self._each(self._original.stream_events(**which))

    def _each(self, events: AsyncGenerator[T]) -> Iterator[T]:
        """What a stream has, waited for; it is closed with this one, or with the client."""
        try:
            while (event := self._loop.wait(_next(events))) is not None:
                yield event
        finally:
            if self._loop.running:
                self._loop.wait(events.aclose())

    list_events = waiting(HttpClient.list_events)
    list_event_subscribers = waiting(HttpClient.list_event_subscribers)
    replay_events = waiting(HttpClient.replay_events)
    create_task = waiting(HttpClient.create_task)
    create_tasks = waiting(HttpClient.create_tasks)
    request_task = waiting(HttpClient.request_task)
    get_task = waiting(HttpClient.get_task)
    wait = waiting(HttpClient.wait)
    list_tasks = waiting(HttpClient.list_tasks)
    cancel_task = waiting(HttpClient.cancel_task)
    get_task_context = waiting(HttpClient.get_task_context)
    get_task_details = waiting(HttpClient.get_task_details)
    explain_task = waiting(HttpClient.explain_task)
    list_task_steps = waiting(HttpClient.list_task_steps)
    list_step_data = waiting(HttpClient.list_step_data)
    get_step_data = waiting(HttpClient.get_step_data)
    get_step = waiting(HttpClient.get_step)
    get_step_audit_history = waiting(HttpClient.get_step_audit_history)
    reset_step = waiting(HttpClient.reset_step)
    resolve_step = waiting(HttpClient.resolve_step)
    complete_step = waiting(HttpClient.complete_step)
    list_templates = waiting(HttpClient.list_templates)
    get_template = waiting(HttpClient.get_template)
    get_template_graph = waiting(HttpClient.get_template_graph)
    validate_template = waiting(HttpClient.validate_template)
    register_templates = waiting(HttpClient.register_templates)
    list_workers = waiting(HttpClient.list_workers)
    list_handlers = waiting(HttpClient.list_handlers)
    list_queues = waiting(HttpClient.list_queues)
    list_pauses = waiting(HttpClient.list_pauses)
    pause = waiting(HttpClient.pause)
    resume = waiting(HttpClient.resume)
    performance = waiting(HttpClient.performance)
    template_history = waiting(HttpClient.template_history)
    bottlenecks = waiting(HttpClient.bottlenecks)
    scaling = waiting(HttpClient.scaling)
    health_check = waiting(HttpClient.health_check)
    detailed_health = waiting(HttpClient.detailed_health)
    is_live = waiting(HttpClient.is_live)
    is_ready = waiting(HttpClient.is_ready)
    metrics = waiting(HttpClient.metrics)
    configuration = waiting(HttpClient.configuration)
    description = waiting(HttpClient.description)
    list_dead_letters = waiting(HttpClient.list_dead_letters)
    get_dead_letter = waiting(HttpClient.get_dead_letter)
    update_dead_letter = waiting(HttpClient.update_dead_letter)
    retry_dead_letter = waiting(HttpClient.retry_dead_letter)
    dead_letter_stats = waiting(HttpClient.dead_letter_stats)
    investigation_queue = waiting(HttpClient.investigation_queue)
    staleness = waiting(HttpClient.staleness)
    list_tasks_briefly = waiting(HttpClient.list_tasks_briefly)
    list_refused_messages = waiting(HttpClient.list_refused_messages)
    list_operator_actions = waiting(HttpClient.list_operator_actions)
    list_identifiers = waiting(HttpClient.list_identifiers)
    get_task_report = waiting(HttpClient.get_task_report)
    get_task_history = waiting(HttpClient.get_task_history)
    get_task_progress = waiting(HttpClient.get_task_progress)
    get_task_logs = waiting(HttpClient.get_task_logs)
    get_task_template = waiting(HttpClient.get_task_template)
    get_task_audit = waiting(HttpClient.get_task_audit)
    retry_task = waiting(HttpClient.retry_task)
    rerun_task = waiting(HttpClient.rerun_task)
    overview = waiting(HttpClient.overview)
    doctor = waiting(HttpClient.doctor)
    get_dead_letter_entry = waiting(HttpClient.get_dead_letter_entry)
    dead_letter_groups = waiting(HttpClient.dead_letter_groups)
    open_dead_letter = waiting(HttpClient.open_dead_letter)
    list_replays = waiting(HttpClient.list_replays)
    get_replay = waiting(HttpClient.get_replay)
    begin_replay = waiting(HttpClient.begin_replay)
    steer_replay = waiting(HttpClient.steer_replay)


async def _next(events: AsyncGenerator[T, None]) -> T | None:
    """The next event; None at the end."""
    async for event in events:
        return event
    return None
