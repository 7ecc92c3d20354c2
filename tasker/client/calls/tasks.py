"""Tasks over HTTP: create, read, wait, stream and cancel."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, TypedDict, Unpack
from uuid import uuid4

from tasker.client.calls.operations import OperationCalls, decoded
from tasker.client.calls.paths import path
from tasker.client.connection import HttpConnection
from tasker.client.task_events import TaskEvent, read_events
from tasker.clock import BackoffPolicy
from tasker.errors import DuplicateTask, RequestTimeout, ServerUnreachable, TooManyRequests, UsageError
from tasker.logging.current_step import running
from tasker.operations.tasks import MOST_STEPS, ON_DUPLICATE, OnDuplicate, TaskOperations
from tasker.services.submission.starts import start_texts
from tasker.template.names import PriorityName
from tasker.views.tasks import Task, TaskCreated

STEPS_PAGE = MOST_STEPS
"""Steps of one answer."""
SLICE_SECONDS = 20.0
"""Longest wait of one request: shorter than the time after which proxies close a silent connection."""
QUIET_SECONDS = 45.0
"""Seconds of silence after which a stream counts as lost: servers send a keep-alive every 15 seconds."""
TAKEN_UP = BackoffPolicy(0.2, 5.0)
TIMES = 8
"""Maximum number of consecutive attempts to resume a wait or a stream."""
AWAY = (ServerUnreachable, RequestTimeout, TooManyRequests)


class TaskOptions(TypedDict, total=False):
    """Optional attributes of a task. Tasks with the same template and idempotency key are one task.

    It begins at `run_at`, a time with a zone, or after `delay` (a timedelta, seconds, or text such as `5m`). `key` is
    for calls within a handler, as in `App.submit`.
    """

    priority: int | PriorityName | None
    tags: Sequence[str]
    idempotency_key: str | None
    correlation_id: str | None
    parent_correlation_id: str | None
    run_at: datetime | str | None
    delay: timedelta | float | str | None
    expires_in: timedelta | float | str | None
    deadline: datetime | timedelta | float | str | None
    tenant: str | None
    callback_url: str | None
    key: str | None


class TaskCalls(OperationCalls, TaskOperations):
    """Calls on tasks. `initiator` and `source_system` are stored with every task that the client creates."""

    connection: HttpConnection
    initiator: str
    source_system: str

    async def create_task(
        self,
        name: str,
        *,
        namespace: str = "default",
        context: Mapping[str, Any] | None = None,
        version: str | None = None,
        reason: str = "",
        on_duplicate: OnDuplicate = "refuse",
        wait: float = 0.0,
        **options: Unpack[TaskOptions],
    ) -> TaskCreated:
        """Create a task from a registered template; without `version` from the version registered last.

        With `wait` the call returns when the task has ended, or after `wait` seconds. With an idempotency key the
        request is retried if its response is lost, and still creates one task. Raises `TemplateNotFound`,
        `InputInvalid`, `DuplicateTask`, `Overloaded`.

        Within a handler the task is a child of its step, as in `App.submit`.
        """
        body = {
            "name": name,
            "namespace": namespace,
            "version": version,
            "context": _input(context),
            "initiator": self.initiator,
            "source_system": self.source_system,
            "reason": reason,
            "on_duplicate": _published(on_duplicate),
            **_encoded(options),
        }
        return decoded(TaskCreated, await self.submit(body, wait=wait))

    async def submit(self, body: Mapping[str, Any], *, wait: float = 0.0) -> dict[str, Any]:
        """Create the task described by a request body, as `create_task`; return the whole response."""
        body = _within_handler(body)
        params = {"wait": f"{wait:.3f}s"} if wait else {}
        if body.get("idempotency_key") is None:
            answer = await self.connection.send("POST", "/v1/tasks", params=params, body=body, waits=wait)
            return dict(answer)
        return await self._submit_surely(body, params, wait)

    async def _submit_surely(self, body: Mapping[str, Any], params: Mapping[str, Any], wait: float) -> dict[str, Any]:
        """Submit with retries; after a lost response the correlation id shows whether an existing task is this one."""
        correlation = body.get("correlation_id") or str(uuid4())
        request = {**body, "correlation_id": correlation}
        again = {**request, "on_duplicate": "return_existing"}
        answer: dict[str, Any] = await self.connection.send(
            "POST", "/v1/tasks", params=params, body=request, again=again, waits=wait, repeatable=True
        )
        if (
            answer.get("created")
            or answer.get("unique")
            or answer.get("debounced")
            or body.get("on_duplicate") == "return_existing"
        ):
            return answer
        if answer.get("correlation_id") != correlation:
            message = f"a task with this identity already exists: {answer['task_uuid']}"
            raise DuplicateTask(message, task_uuid=answer["task_uuid"], state=answer["status"])
        return {**answer, "created": True}

    async def request_task(
        self,
        name: str,
        *,
        namespace: str = "default",
        context: Mapping[str, Any] | None = None,
        version: str | None = None,
        task_uuid: str | None = None,
        reason: str = "",
        **options: Unpack[TaskOptions],
    ) -> str:
        """Request a task from an orchestrator through the server's broker, and return its future identifier.

        With a `task_uuid`, for example of a request whose response was lost, the request is retried and creates one
        task. Requests that the orchestrator refuses are in `list_refused_messages`.
        """
        body = {
            "name": name,
            "namespace": namespace,
            "version": version,
            "context": _input(context),
            "task_uuid": task_uuid,
            "initiator": self.initiator,
            "source_system": self.source_system,
            "reason": reason,
            **_encoded(options),
        }
        surely = task_uuid is not None
        answer = await self.connection.send("POST", "/v1/task-requests", body=body, repeatable=surely)
        return str(answer["task_uuid"])

    async def create_tasks(
        self, tasks: Sequence[Mapping[str, Any]], *, on_duplicate: OnDuplicate = "refuse"
    ) -> dict[str, Any]:
        """Create up to 1,000 tasks, each with its own outcome in `results`: a failure does not affect the others."""
        common = {"initiator": self.initiator, "source_system": self.source_system}
        body = {
            "tasks": [_within_handler({**common, **task}) for task in tasks],
            "on_duplicate": _published(on_duplicate),
        }
        return dict(await self.connection.send("POST", "/v1/tasks/batch", body=body))

    async def get_task(self, task_uuid: str) -> Task:
        """The task with its steps, read page by page. Raises `TaskNotFound`."""
        return await self._whole(await self.get_task_page(task_uuid, limit=STEPS_PAGE))

    async def _whole(self, task: Task) -> Task:
        """The task with those of its steps that its answer left for later."""
        steps, more = list(task.steps), task.more_steps
        while more:
            page = await self.get_task_page(task.task_uuid, limit=STEPS_PAGE, offset=len(steps))
            more = page.more_steps if page.steps else 0
            steps += page.steps
        return replace(task, steps=steps, more_steps=0)

    async def wait(self, task_uuid: str, timeout: float | None = None) -> Task:
        """Wait until the task has ended and return it.

        Raises `TaskNotFound`, and `TimeoutError` after `timeout` seconds. The server holds the request until then, so
        the client does not poll. A server restart in between is tolerated; if the server stays away, raises
        `ServerUnreachable`.
        """
        loop = asyncio.get_running_loop()
        end = None if timeout is None else loop.time() + timeout
        failures = 0
        while True:
            left = SLICE_SECONDS if end is None else min(SLICE_SECONDS, end - loop.time())
            asked_for, began = max(0.0, left), loop.time()
            try:
                answer = await self.get_task_page(task_uuid, wait=asked_for, limit=STEPS_PAGE)
            except AWAY:
                failures += 1
                if failures > TIMES or (end is not None and loop.time() >= end):
                    raise
                await asyncio.sleep(TAKEN_UP.pause(failures - 1))
                continue
            failures = 0
            if answer.finished:
                return await self._whole(answer)
            if end is not None and loop.time() >= end:
                raise TimeoutError(f"task {task_uuid} has not ended after {timeout:g} s; it is {answer.status}")
            if loop.time() - began < asked_for / 2:  # the task was reset as it ended, or the server does not wait
                await asyncio.sleep(min(1.0, asked_for))

    async def stream(self, task_uuid: str, after: str | None = None) -> AsyncGenerator[TaskEvent, None]:
        """Yield the events of a task, from its beginning or after the `place` of an event, until it has ended.

        A lost connection is resumed where it was: no event is missed or repeated. The last event is the `end`. Raises
        `TaskNotFound`, and `ServerUnreachable` if the server stays away.
        """
        seen: set[tuple[object, ...]] = set()
        failures = 0
        while True:
            try:
                async with aclosing(self._events(task_uuid, after)) as events:
                    async for event in events:
                        failures = 0
                        after = event.place or after
                        if event.kind != "transition" or event.key not in seen:
                            seen.add(event.key)
                            yield event
                        if event.kind == "end":
                            return
            except AWAY:
                if failures >= TIMES:
                    raise
            failures += 1
            await asyncio.sleep(TAKEN_UP.pause(failures - 1))

    async def _events(self, task_uuid: str, after: str | None) -> AsyncGenerator[TaskEvent, None]:
        """Yield the events of one connection; without further events the `end` is made from the task's state."""
        headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": after} if after else {})
        async with self.connection.stream(path("/v1/tasks", task_uuid, "events"), headers, QUIET_SECONDS) as answer:
            if answer.status_code == 204:
                yield TaskEvent("end", to_state=(await self.get_task(task_uuid)).status)
                return
            async with aclosing(read_events(answer.aiter_lines())) as events:
                async for event in events:
                    yield event


def _input(context: Any) -> Any:
    """Return an empty input for None; a value that is not a mapping is left for the server to reject."""
    if context is None:
        return {}
    return dict(context) if isinstance(context, Mapping) else context


def _published(on_duplicate: OnDuplicate) -> str:
    """Return the word of the API. Raises `UsageError`, as `App.submit` does."""
    if on_duplicate not in ON_DUPLICATE:
        raise UsageError(f"on_duplicate is {on_duplicate!r}, expected one of {', '.join(ON_DUPLICATE)}")
    return ON_DUPLICATE[on_duplicate]


def _within_handler(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the description of a task as one of the step whose handler runs here; unchanged outside of a handler."""
    claim = running.get()
    if claim is None or "parent" in body:
        return body
    parent = {"step_uuid": claim.step_uuid, "token": claim.token}
    above = body.get("parent_correlation_id") or claim.correlation_id or None
    return {**body, "parent": parent, "parent_correlation_id": above}


def _encoded(options: TaskOptions) -> dict[str, Any]:
    """Return the options as JSON values."""
    start = start_texts(options.get("run_at"), options.get("delay"), options.get("expires_in"), options.get("deadline"))
    return {**options, **{name: text for name, text in start.items() if text is not None}}
