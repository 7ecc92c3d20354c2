"""Tasks that a handler in a child process starts: the child asks its parent, which creates them."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

from tasker import errors
from tasker.errors import TaskerError, UsageError
from tasker.execution.modes.wire import START, STARTED, CallId
from tasker.handlers.claims import Claim
from tasker.handlers.starting import StartedTask, TaskStarter
from tasker.json_values import encode

_numbers = itertools.count(1)


class StartRequests:
    """Requests of a child to start tasks that its parent has not answered yet, by their numbers."""

    def __init__(self) -> None:
        self._waiting: dict[int, Future[StartedTask]] = {}
        self._lock = threading.Lock()

    def begin(self) -> tuple[int, Future[StartedTask]]:
        """Return the number of a new request, and its answer to come."""
        future: Future[StartedTask] = Future()
        with self._lock:
            number = next(_numbers)
            self._waiting[number] = future
        return number, future

    def answered(self, message: Mapping[str, Any]) -> None:
        """Take the answer of the parent; that of a request that nobody waits for is ignored."""
        with self._lock:
            future = self._waiting.pop(message["number"], None)
        if future is None:
            return
        if "error" in message:
            future.set_exception(_error(message["error"]))
        else:
            future.set_result(StartedTask(**message["task"]))


class ParentStarter:
    """Implementation of `TaskStarter` in a child process, for one call of a handler."""

    def __init__(self, call: CallId, requests: StartRequests, send: Callable[[Mapping[str, Any]], None]) -> None:
        self._call, self._requests, self._send = call, requests, send

    def bind(self, loop: asyncio.AbstractEventLoop) -> None:
        """Do nothing: the parent has the loop."""

    def start(
        self, claim: Claim, target: str, values: Mapping[str, Any] | None, options: Mapping[str, Any]
    ) -> StartedTask:
        """Ask the parent for the task and wait for its answer. Raises `UsageError` in a fork of the child."""
        number, future = self._requests.begin()
        fields = {"target": target, "values": values, "options": dict(options)}
        encode(fields)  # raises here for what is not JSON
        try:
            self._send({"call": self._call, "type": START, "number": number, "fields": fields})
        except OSError:
            raise UsageError(
                "context.submit: this process has no connection to its worker",
                hint="call it in the process of the handler, not in a fork of it",
            ) from None
        return future.result()

    async def start_async(
        self, claim: Claim, target: str, values: Mapping[str, Any] | None, options: Mapping[str, Any]
    ) -> StartedTask:
        """Ask the parent for the task without blocking the loop of the handler."""
        return await asyncio.to_thread(self.start, claim, target, values, options)


async def answer_start(starter: TaskStarter | None, claim: Claim, message: Mapping[str, Any]) -> dict[str, Any]:
    """Create the task that a child asks for, and return the answer. Raises nothing but cancellation."""
    answer: dict[str, Any] = {"type": STARTED, "number": message["number"]}
    try:
        if starter is None:
            raise UsageError("context.submit: this worker starts no tasks")
        task = await starter.start_async(claim, **message["fields"])
    except TaskerError as error:
        return {**answer, "error": {**error.to_dict(), "hint": error.hint}}
    except Exception as error:  # a defect must not leave the handler waiting
        return {**answer, "error": {"error_class": "", "message": f"{type(error).__name__}: {error}"}}
    return {**answer, "task": {"task_uuid": task.task_uuid, "created": task.created}}


def _error(fields: Mapping[str, Any]) -> TaskerError:
    """Return the error that the parent reports, with its class where that needs nothing but a message."""
    kind = getattr(errors, str(fields["error_class"]), TaskerError)
    kept = {name: fields[name] for name in ("hint", "retryable", "retry_after") if fields.get(name) is not None}
    try:
        made: TaskerError = kind(fields["message"], **kept)
    except TypeError:
        made = TaskerError(fields["message"], **kept)
    return made
