"""Questions of a handler in a child process to its worker: for locks, child tasks, tasks to start."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

from tasker import errors
from tasker.errors import TaskerError, UsageError
from tasker.execution.attempt.attempt import Attempt
from tasker.execution.attempt.worker_calls import written
from tasker.execution.modes.wire import ANSWER, ASK, CallId
from tasker.handlers.claims import Claim
from tasker.handlers.starting import StartedTask
from tasker.json_values import encode

START = "start"
"""Action that starts a task; the others are those of `HandlerCalls`."""
_numbers = itertools.count(1)


class Questions:
    """Questions of a child that its parent has not answered yet, by their numbers."""

    def __init__(self) -> None:
        self._waiting: dict[int, Future[Mapping[str, Any]]] = {}
        self._lock = threading.Lock()

    def begin(self) -> tuple[int, Future[Mapping[str, Any]]]:
        """Return the number of a new question, and its answer to come."""
        future: Future[Mapping[str, Any]] = Future()
        with self._lock:
            number = next(_numbers)
            self._waiting[number] = future
        return number, future

    def answered(self, message: Mapping[str, Any]) -> None:
        """Take the answer of the parent; that of a question that nobody waits for is ignored."""
        with self._lock:
            future = self._waiting.pop(message["number"], None)
        if future is None:
            return
        if "error" in message:
            future.set_exception(_error(message["error"]))
        else:
            future.set_result(message["answer"])


class ParentCalls:
    """`HandlerCalls` and `TaskStarter` in a child process, for one call of a handler."""

    def __init__(self, call: CallId, questions: Questions, send: Callable[[Mapping[str, Any]], None]) -> None:
        self._call, self._questions, self._send = call, questions, send

    def call(self, action: str, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Ask the parent and wait for its answer. Raises its error, and `UsageError` in a fork of the child."""
        encode(fields)  # raises here for what is not JSON
        number, future = self._questions.begin()
        try:
            self._send({"call": self._call, "type": ASK, "number": number, "action": action, "fields": fields})
        except OSError:
            raise UsageError(
                "this process has no connection to its worker",
                hint="use the context in the process of the handler, not in a fork of it",
            ) from None
        return future.result()

    async def acall(self, action: str, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Ask the parent without blocking the loop of the handler."""
        return await asyncio.to_thread(self.call, action, fields)

    def bind(self, loop: asyncio.AbstractEventLoop) -> None:
        """Do nothing: the parent has the loop."""

    def start(
        self, claim: Claim, target: str, values: Mapping[str, Any] | None, options: Mapping[str, Any]
    ) -> StartedTask:
        """Ask the parent for a task; see `call`."""
        return StartedTask(**self.call(START, {"target": target, "values": values, "options": dict(options)}))

    async def start_async(
        self, claim: Claim, target: str, values: Mapping[str, Any] | None, options: Mapping[str, Any]
    ) -> StartedTask:
        """Ask the parent for a task without blocking the loop of the handler."""
        return await asyncio.to_thread(self.start, claim, target, values, options)


async def answer_question(attempt: Attempt, message: Mapping[str, Any]) -> dict[str, Any]:
    """Do what a child asks for, and return the answer. Raises nothing but cancellation."""
    answer: dict[str, Any] = {"type": ANSWER, "number": message["number"]}
    try:
        return {**answer, "answer": await _done(attempt, message["action"], message["fields"])}
    except TaskerError as error:
        return {**answer, "error": {**error.to_dict(), "hint": error.hint}}
    except Exception as error:  # a defect must not leave the handler waiting
        return {**answer, "error": {"error_class": "", "message": f"{type(error).__name__}: {error}"}}


def too_late(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer to a thread that was left behind, or that uses the context of an earlier call."""
    error = {"error_class": "UsageError", "message": "the call of the handler with this context is over"}
    return {"type": ANSWER, "number": message["number"], "error": error}


async def _done(attempt: Attempt, action: str, fields: Mapping[str, Any]) -> Mapping[str, Any]:
    if action != START:
        return await written(attempt, action, fields)
    if attempt.starter is None:
        raise UsageError("context.submit: this worker starts no tasks")
    task = await attempt.starter.start_async(attempt.claim, **fields)
    return {"task_uuid": task.task_uuid, "created": task.created}


def _error(fields: Mapping[str, Any]) -> TaskerError:
    """Return the error that the parent reports, with its class where that needs nothing but a message."""
    kind = getattr(errors, str(fields["error_class"]), TaskerError)
    kept = {name: fields[name] for name in ("hint", "retryable", "retry_after") if fields.get(name) is not None}
    try:
        made: TaskerError = kind(fields["message"], **kept)
    except TypeError:
        made = TaskerError(fields["message"], **kept)
    return made
