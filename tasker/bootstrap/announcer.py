"""Events and counters of a worker's attempts, published on the event bridge."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable
from typing import Any

from tasker.engine.exchange import Result
from tasker.errors import StepExecutionError
from tasker.event_bridge import AnnouncedStep, EventBridge, EventNames
from tasker.execution.attempt.attempt import Attempt, AttemptEnd, Checkpoint, UnreportedEnd
from tasker.execution.attempt.call import inputs_of
from tasker.handlers.claims import Failure
from tasker.handlers.legacy_event import event_for
from tasker.handlers.results import StepError, StepExecutionResult
from tasker.handlers.step_handler import CheckpointYield
from tasker.json_values import as_stored

WAITING_EVENTS = 1_000
JOIN_SECONDS = 5.0

Publish = Callable[[], None]


class StepAnnouncer:
    """`Observer` of attempts that publishes events. An event without a listener costs only a lookup.

    Listeners run in a thread of their own, one event after the other, so that a slow one never delays the worker; if
    1,000 events wait, further ones are dropped and counted.
    """

    def __init__(self, bridge: EventBridge) -> None:
        self.processed = self.succeeded = self.failed = self.running = self.dropped = 0
        self._bridge = bridge
        self._worker_id = ""
        self._waiting: queue.Queue[Publish | None] = queue.Queue(WAITING_EVENTS)
        self._thread: threading.Thread | None = None

    def start(self, worker_id: str) -> None:
        """Start to deliver events."""
        self._worker_id = worker_id
        self._thread = threading.Thread(target=self._deliver, name="tasker events", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Deliver waiting events within five seconds and stop. May be called twice."""
        thread, self._thread = self._thread, None
        if thread is not None:
            with contextlib.suppress(queue.Full):
                self._waiting.put(None, timeout=JOIN_SECONDS)
            thread.join(JOIN_SECONDS)

    def received(self, attempt: Attempt) -> None:
        """Count and publish the start of a handler call."""
        self.running += 1
        if self._listens(EventNames.STEP_EXECUTION_RECEIVED):
            self._publish(EventNames.STEP_EXECUTION_RECEIVED, lambda: (_event(attempt),))

    def saved(self, attempt: Attempt, position: Checkpoint) -> None:
        """Publish the checkpoint of a handler."""
        if self._listens(EventNames.STEP_CHECKPOINT_YIELD):
            stop = CheckpointYield(position.cursor, position.items_processed, position.accumulated_results)
            self._publish(EventNames.STEP_CHECKPOINT_YIELD, lambda: (attempt.claim.step_uuid, stop))

    def ended(self, attempt: Attempt, end: AttemptEnd) -> None:
        """Count and publish the end of an attempt, unless it was cancelled, lost or released."""
        self.running -= 1
        if isinstance(end, UnreportedEnd):
            return
        self.processed += 1
        failure = end.failure
        if failure is None:
            self.succeeded += 1
        else:
            self.failed += 1
            if self._listens(EventNames.HANDLER_ERROR):
                self._publish(EventNames.HANDLER_ERROR, lambda: (_event(attempt), _exception(failure)))
        if self._listens(EventNames.STEP_COMPLETION_SENT):
            self._publish(EventNames.STEP_COMPLETION_SENT, lambda: (_report(end, self._worker_id),))

    def _listens(self, event: str) -> bool:
        return self._bridge.is_active and self._bridge.listener_count(event) > 0

    def _publish(self, event: str, arguments: Callable[[], tuple[Any, ...]]) -> None:
        try:
            self._waiting.put_nowait(lambda: self._bridge.publish(event, *arguments()))
        except queue.Full:
            self.dropped += 1

    def _deliver(self) -> None:
        while (publish := self._waiting.get()) is not None:
            publish()


def _event(attempt: Attempt) -> AnnouncedStep:
    plan = attempt.plan
    template = (plan.namespace, plan.name, plan.version)
    made = event_for(
        attempt.claim,
        template,
        attempt.step,
        attempt.task_context,
        attempt.dependency_results,
        inputs_of(attempt),
    )
    return AnnouncedStep(**dict(made))


def _exception(failure: Failure) -> StepExecutionError:
    return StepExecutionError(
        failure.message,
        failure.error_type,
        failure.retryable,
        error_code=failure.error_code,
        metadata=dict(failure.metadata),
    )


def _report(end: Result, worker_id: str) -> StepExecutionResult:
    claim, outcome = end.claim, end.outcome
    who: dict[str, Any] = {
        "step_uuid": claim.step_uuid,
        "task_uuid": claim.task_uuid,
        "execution_time_ms": end.duration_ms,
        "worker_id": worker_id,
        "correlation_id": claim.correlation_id,
    }
    if isinstance(outcome, Failure):
        return StepExecutionResult.failure_result(error=StepError.of(outcome), **who)
    value, metadata = as_stored(outcome.encoded), dict(outcome.metadata)
    return StepExecutionResult.success_result(result=value, metadata=metadata, **who)
