"""What is told of an attempt and of a task. Of inputs and results there is nothing in it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from importlib.metadata import version

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, TraceFlags, TraceState
from opentelemetry.trace.status import Status, StatusCode

from tasker.hookspecs import AttemptEnded, AttemptStarted, TaskFinished
from tasker_otel.encoding import Pairs, SharingSpan
from tasker_otel.identity import TaskIdentity, attempt_span, task_identity

REMEMBERED_TASKS = 10_000
SAMPLED = TraceFlags(TraceFlags.SAMPLED)
WELL = Status(StatusCode.UNSET)


@dataclass(frozen=True, slots=True)
class KnownTask:
    """A task that this process has run an attempt of; `attributes` are those that all its spans have."""

    identity: TaskIdentity
    context: SpanContext
    attributes: Pairs
    template: str


class Spans:
    """Makes spans, and remembers the tasks that it has heard of last. One thread at a time may use it.

    `share` is that of tasks without a traceparent that are traced, `messages`: what handlers raised is told. Spans are
    made complete: a tracer would choose identifiers of its own, and the clock of when it hears of something.
    """

    def __init__(self, resource: Resource, share: float = 1.0, *, messages: bool = False) -> None:
        self._resource, self._scope = resource, InstrumentationScope("tasker", version("tasker-engine"))
        self._share, self._messages = share, messages
        self._tasks: OrderedDict[str, KnownTask] = OrderedDict()

    def attempt(self, ended: AttemptEnded) -> SharingSpan | None:
        """The span of an attempt; None where its trace is not kept."""
        attempt = ended.attempt
        task = self._known(attempt)
        if not task.identity.sampled:
            return None
        start = nanoseconds(attempt.started_at)
        end = max(start, nanoseconds(ended.ended_at))
        of_step = _of_step(
            attempt.step, attempt.handler, attempt.attempt, attempt.max_attempts, attempt.worker, ended.end
        )
        return SharingSpan(
            "worker.step_execution",
            _within(task.context, attempt_span(attempt.step_uuid, attempt.token)),
            task.context,
            self._resource,
            {"step_uuid": attempt.step_uuid},
            tuple(self._events(ended, start, end)),
            shared=(task.attributes, of_step),
            status=Status(StatusCode.ERROR, _clean(ended.error_type or "error")) if _has_failed(ended) else WELL,
            start_time=start,
            end_time=end,
            instrumentation_scope=self._scope,
        )

    def task(self, finished: TaskFinished, now: datetime) -> SharingSpan | None:
        """The span of a task; None where its trace is not kept, or this process cannot know which trace it is in."""
        task = self._tasks.pop(finished.task_uuid, None)
        if task is None or not task.identity.sampled:
            return None
        start = created_at(finished.task_uuid)
        is_wrong = finished.state == "error"
        return SharingSpan(
            "task_execution",
            task.context,
            _caller(task),
            self._resource,
            shared=(task.attributes, (("task_name", task.template), ("state", finished.state))),
            status=Status(StatusCode.ERROR, "the task ended in error") if is_wrong else WELL,
            start_time=start,
            end_time=max(start, nanoseconds(now)),
            instrumentation_scope=self._scope,
        )

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

    def _events(self, ended: AttemptEnded, start: int, end: int) -> Iterator[Event]:
        yield Event("step.execution_started", None, start)
        if ended.duration_ms is not None:
            completed = {"success": ended.end == "succeeded", "duration_ms": ended.duration_ms}
            yield Event("step.execution_completed", completed, end)
        if _has_failed(ended):
            yield Event("exception", dict(self._raised(ended)), end)
            if ended.retryable and ended.attempt.attempt < ended.attempt.max_attempts:
                yield Event("step.retry", {"next_attempt": ended.attempt.attempt + 1}, end)

    def _raised(self, ended: AttemptEnded) -> Iterator[tuple[str, str]]:
        yield "exception.type", _clean(ended.error_type or "error")
        if self._messages and ended.error_message:
            yield "exception.message", _clean(ended.error_message)


def nanoseconds(moment: datetime) -> int:
    """Since 1970, as exact as the moment is."""
    return round(moment.timestamp() * 1_000_000) * 1000


def created_at(task_uuid: str) -> int:
    """When a task was submitted, in nanoseconds since 1970: its identifier begins with the millisecond."""
    return int(task_uuid[:8] + task_uuid[9:13], 16) * 1_000_000


def _new(attempt: AttemptStarted, identity: TaskIdentity) -> KnownTask:
    state = TraceState.from_header([attempt.tracestate]) if attempt.tracestate else None
    trace_id, span_id = int.from_bytes(identity.trace_id), int.from_bytes(identity.span_id)
    attributes: Pairs = (
        ("correlation_id", attempt.correlation_id),
        ("task_uuid", attempt.task_uuid),
        ("namespace", attempt.namespace),
        ("template", attempt.template),
    )
    return KnownTask(identity, SpanContext(trace_id, span_id, False, SAMPLED, state), attributes, attempt.template)


def _within(task: SpanContext, span_id: bytes) -> SpanContext:
    return SpanContext(task.trace_id, int.from_bytes(span_id), False, SAMPLED, task.trace_state)


def _caller(task: KnownTask) -> SpanContext | None:
    """The span that the task was submitted by, in another process."""
    parent_id, own = task.identity.parent_id, task.context
    if parent_id is None:
        return None
    return SpanContext(own.trace_id, int.from_bytes(parent_id), True, SAMPLED, own.trace_state)


@lru_cache(1000)
def _of_step(step: str, handler: str, attempt: int, max_attempts: int, worker: str, end: str) -> Pairs:
    """What attempts of a step in one process have in common."""
    return (
        ("step_name", step),
        ("handler", handler),
        ("attempt", attempt),
        ("max_attempts", max_attempts),
        ("worker", worker),
        ("end", end),
    )


def _has_failed(ended: AttemptEnded) -> bool:
    return ended.duration_ms is not None and ended.end != "succeeded"


def _clean(text: str) -> str:
    """What a handler raised may hold halves of characters, which protobuf refuses, and the whole batch with them."""
    return text.encode("utf-8", "replace").decode()
