"""What is told of an attempt and of a task. Of inputs and results there is nothing in it."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from uuid import UUID

from tasker.hookspecs import AttemptEnded, AttemptStarted, TaskFinished
from tasker_otel.identity import TaskIdentity, attempt_span, task_identity
from tasker_otel.wire import SpanField, attribute, event, event_attribute, failed, field, moment, number_field, times

REMEMBERED_TASKS = 10_000
TEXT_OF_NO_UUID = str(UUID(int=0))
INTERNAL = 1
"""The kind of a span that is neither of a request nor of a message."""
_KIND = number_field(SpanField.KIND, INTERNAL)
ATTEMPT = field(SpanField.NAME, b"worker.step_execution") + _KIND
TASK = field(SpanField.NAME, b"task_execution") + _KIND
STARTED = event("step.execution_started")
SPAN_ID = field(SpanField.SPAN_ID, bytes(8))[:-8]
STEP_UUID, TASK_UUID = (attribute(key, TEXT_OF_NO_UUID)[: -len(TEXT_OF_NO_UUID)] for key in ("step_uuid", "task_uuid"))
"""All but the value, which has always as many bytes: most of the work of a span is done before it."""


@dataclass(frozen=True, slots=True)
class KnownTask:
    """A task that this process has run an attempt of.

    `common` is what all its spans hold, encoded, `of_attempts` that of its attempts.
    """

    identity: TaskIdentity
    common: bytes
    of_attempts: bytes
    template: str


class Spans:
    """Makes spans, and remembers the tasks that it has heard of last. One thread at a time may use it.

    `share` is that of tasks without a traceparent that are traced, `messages`: what handlers raised is told.
    """

    def __init__(self, share: float = 1.0, *, messages: bool = False) -> None:
        self._share, self._messages = share, messages
        self._tasks: OrderedDict[str, KnownTask] = OrderedDict()

    def attempt(self, ended: AttemptEnded) -> bytes | None:
        """The span of an attempt; None where its trace is not kept."""
        attempt = ended.attempt
        task = self._known(attempt)
        if not task.identity.sampled:
            return None
        start = nanoseconds(attempt.started_at)
        end = max(start, nanoseconds(ended.ended_at))
        parts = (
            task.of_attempts,
            SPAN_ID,
            attempt_span(attempt.step_uuid, attempt.token),
            times(start, end),
            _of_step(attempt.step, attempt.handler, attempt.attempt, attempt.max_attempts, attempt.worker, ended.end),
            STEP_UUID,
            attempt.step_uuid.encode(),
            STARTED,
            moment(start),
            self._end(ended, moment(end)),
        )
        return b"".join(parts)

    def task(self, finished: TaskFinished, now: datetime) -> bytes | None:
        """The span of a task; None where its trace is not kept, or this process cannot know which trace it is in."""
        task = self._tasks.pop(finished.task_uuid, None)
        if task is None or not task.identity.sampled:
            return None
        start, parent_id = created_at(finished.task_uuid), task.identity.parent_id
        parts = (
            task.common,
            SPAN_ID,
            task.identity.span_id,
            field(SpanField.PARENT_ID, parent_id) if parent_id else b"",
            TASK,
            times(start, max(start, nanoseconds(now))),
            attribute("task_name", task.template),
            attribute("state", finished.state),
            failed("the task ended in error") if finished.state == "error" else b"",
        )
        return b"".join(parts)

    def _known(self, attempt: AttemptStarted) -> KnownTask:
        task = self._tasks.get(attempt.task_uuid)
        if task is None:
            task = _new(attempt, task_identity(attempt.task_uuid, attempt.traceparent, self._share))
            self._tasks[attempt.task_uuid] = task
            if len(self._tasks) > REMEMBERED_TASKS:
                self._tasks.popitem(last=False)
        else:
            self._tasks.move_to_end(attempt.task_uuid)
        return task

    def _end(self, ended: AttemptEnded, at: bytes) -> bytes:
        if ended.duration_ms is None:
            return b""
        completed = _completed(ended.end == "succeeded", ended.duration_ms) + at
        return completed if ended.end == "succeeded" else completed + self._failure(ended, at)

    def _failure(self, ended: AttemptEnded, at: bytes) -> bytes:
        attempt, kind = ended.attempt, ended.error_type or "error"
        told = event_attribute("exception.type", kind)
        if self._messages and ended.error_message:
            told += event_attribute("exception.message", ended.error_message)
        found = event("exception", told) + at + failed(kind)
        if ended.retryable and attempt.attempt < attempt.max_attempts:
            found += event("step.retry", event_attribute("next_attempt", attempt.attempt + 1)) + at
        return found


def nanoseconds(moment: datetime) -> int:
    """Since 1970, as exact as the moment is."""
    return round(moment.timestamp() * 1_000_000) * 1000


def created_at(task_uuid: str) -> int:
    """When a task was submitted, in nanoseconds since 1970: its identifier begins with the millisecond."""
    return int(task_uuid[:8] + task_uuid[9:13], 16) * 1_000_000


def _new(attempt: AttemptStarted, identity: TaskIdentity) -> KnownTask:
    common = _of_task(attempt, identity)
    parent = field(SpanField.PARENT_ID, identity.span_id)
    return KnownTask(identity, common, common + parent + ATTEMPT, attempt.template)


def _of_task(attempt: AttemptStarted, identity: TaskIdentity) -> bytes:
    state = attempt.tracestate
    return b"".join(
        (
            field(SpanField.TRACE_ID, identity.trace_id),
            field(SpanField.TRACE_STATE, state.encode()) if state else b"",
            attribute("correlation_id", attempt.correlation_id),
            TASK_UUID,
            attempt.task_uuid.encode(),
            _of_template(attempt.namespace, attempt.template),
        )
    )


@lru_cache(1000)
def _of_template(namespace: str, template: str) -> bytes:
    return attribute("namespace", namespace) + attribute("template", template)


@lru_cache(1000)
def _of_step(step: str, handler: str, attempt: int, max_attempts: int, worker: str, end: str) -> bytes:
    """What attempts of a step in one process have in common: encoded once."""
    texts = {"step_name": step, "handler": handler, "worker": worker, "end": end}
    numbers = attribute("attempt", attempt) + attribute("max_attempts", max_attempts)
    return numbers + b"".join(attribute(key, value) for key, value in texts.items())


@lru_cache(1000)
def _completed(success: bool, duration_ms: int) -> bytes:
    told = event_attribute("success", success) + event_attribute("duration_ms", duration_ms)
    return event("step.execution_completed", told)
