"""Spans of attempts and tasks. They contain no inputs and results."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from datetime import datetime
from functools import lru_cache

from opentelemetry.trace import TraceState

from tasker.dataclasses import dataclass
from tasker.plugins.hook_arguments import AttemptEnded, AttemptStarted, TaskClosed, TaskFinished, TaskSubmitted
from tasker_otel.encoding import AttemptShape, Common, Pairs, Shape
from tasker_otel.identity import TaskIdentity, attempt_span, task_identity

REMEMBERED_TASKS = 10_000
COMMON = ("correlation_id", "task_uuid", "namespace", "template")


@dataclass(frozen=True, slots=True)
class KnownTask:
    """Task of which this process has run an attempt; `common` is the common part of its spans."""

    identity: TaskIdentity
    common: bytes
    template: str


class Spans:
    """Factory of encoded spans, which remembers the most recent tasks. One thread at a time may use it.

    `share` is the sampling ratio of tasks without a traceparent; `messages`: include the messages of exceptions. Spans
    are created complete: a tracer would choose identifiers of its own, and the time of its call.
    """

    def __init__(self, share: float = 1.0, *, messages: bool = False) -> None:
        self._share, self._messages = share, messages
        self._tasks: OrderedDict[str, KnownTask] = OrderedDict()
        self._common = Common(COMMON)
        self._task_shape, self._attempt_shape = lru_cache(1000)(_of_task), lru_cache(1000)(_of_attempt)

    def attempt(self, ended: AttemptEnded) -> bytes | None:
        """Return the span of an attempt, or None if its trace is not sampled."""
        attempt = ended.attempt
        task = self.known(attempt)
        if not task.identity.sampled:
            return None
        start = nanoseconds(attempt.started_at)
        place = (attempt_span(attempt.step_uuid, attempt.token), task.identity.span_id)
        times = (start, max(start, nanoseconds(ended.ended_at)))
        message = clean(ended.error_message) if self._messages and ended.error_message else ""
        shape = self._shaped(attempt, ended, bool(message))
        return task.common + shape.encoded(place, attempt.step_uuid, times, ended.duration_ms or 0, message)

    def task(self, finished: TaskFinished, now: datetime) -> bytes | None:
        """Return the span of a task, or None if its trace is not sampled or the task is not remembered."""
        task = self._tasks.pop(finished.task_uuid, None)
        return self._task(task, finished.task_uuid, finished.state, now) if task else None

    def closed(self, closed: TaskClosed) -> bytes | None:
        """Return the span of a task that this process may not know, or None if its trace is not sampled."""
        self._tasks.pop(closed.task_uuid, None)
        return self._task(
            self.of(closed, closed.namespace, closed.template), closed.task_uuid, closed.state, closed.ended_at
        )

    def _task(self, task: KnownTask, task_uuid: str, state: str, end: datetime) -> bytes | None:
        if not task.identity.sampled:
            return None
        start = created_at(task_uuid)
        times = (start, max(start, nanoseconds(end)))
        shape = self._task_shape(task.template, state)
        parent = task.identity.parent_id
        return task.common + shape.encoded(task.identity.span_id, parent, times, is_remote=parent is not None)

    def known(self, attempt: AttemptStarted) -> KnownTask:
        """Return the task of an attempt, and remember it."""
        task = self._tasks.get(attempt.task_uuid)
        if task is None:
            task = self._tasks[attempt.task_uuid] = self.of(attempt, attempt.namespace, attempt.template)
            if len(self._tasks) > REMEMBERED_TASKS:
                self._tasks.popitem(last=False)
        else:
            self._tasks.move_to_end(attempt.task_uuid)
        return task

    def of(self, event: AttemptStarted | TaskClosed | TaskSubmitted, namespace: str, template: str) -> KnownTask:
        """Return the task of this event, of a template of this namespace."""
        identity = task_identity(event.task_uuid, event.traceparent, self._share)
        values = (event.correlation_id, event.task_uuid, namespace, template)
        return KnownTask(
            identity, self._common.encoded(identity.trace_id, state_of(event.tracestate), values), template
        )

    def _shaped(self, attempt: AttemptStarted, ended: AttemptEnded, has_message: bool) -> AttemptShape:
        return self._attempt_shape(
            attempt.step,
            attempt.handler,
            attempt.attempt,
            attempt.max_attempts,
            attempt.worker,
            ended.end,
            ended.duration_ms is not None,
            ended.error_type,
            bool(ended.retryable),
            has_message,
        )


def state_of(tracestate: str | None) -> str:
    """Return the valid entries of a header for a span; empty without a header."""
    return TraceState.from_header([tracestate]).to_header() if tracestate else ""


def nanoseconds(moment: datetime) -> int:
    """Return nanoseconds since 1970, as precise as the argument."""
    return round(moment.timestamp() * 1_000_000) * 1000


def created_at(task_uuid: str) -> int:
    """Return the time of submission, in nanoseconds since 1970: a task's identifier begins with the millisecond."""
    return int(task_uuid[:8] + task_uuid[9:13], 16) * 1_000_000


def _of_task(template: str, state: str) -> Shape:
    why = "the task ended in error" if state == "error" else ""
    return Shape("task_execution", [("task_name", template), ("state", state)], why)


def _of_attempt(
    step: str,
    handler: str,
    attempt: int,
    max_attempts: int,
    worker: str,
    end: str,
    has_result: bool,
    error_type: str | None,
    retryable: bool,
    has_message: bool,
) -> AttemptShape:
    """Return the common part of the attempts of a step in one process with the same kind of outcome."""
    attributes = (
        ("step_name", step),
        ("handler", handler),
        ("attempt", attempt),
        ("max_attempts", max_attempts),
        ("worker", worker),
        ("end", end),
    )
    completed = [("success", end == "succeeded")] if has_result else None
    if not has_result or end == "succeeded":
        return AttemptShape(attributes, completed, (), "")
    why = clean(error_type or "error")
    following = attempt + 1 if retryable and attempt < max_attempts else None
    return AttemptShape(attributes, completed, _raised(why, has_message, following), why)


def _raised(why: str, has_message: bool, following: int | None) -> Iterator[tuple[str, Pairs]]:
    yield "exception", [("exception.type", why), *([("exception.message", "")] if has_message else [])]
    if following is not None:
        yield "step.retry", [("next_attempt", following)]


def clean(text: str) -> str:
    """Replace surrogates, which a handler's message may contain: protobuf refuses a batch that contains any."""
    return text.encode("utf-8", "replace").decode()
