"""Events and counters of a worker's attempts, published on the event bridge."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tasker.engine.exchange import Result
from tasker.errors import StepExecutionError
from tasker.execution.attempt.attempt import Attempt, AttemptEnd, Checkpoint, ClaimWrites, UnreportedEnd
from tasker.execution.attempt.call import inputs_of
from tasker.execution.attempt.runner import AttemptRunner
from tasker.handlers.claims import Failure
from tasker.json_values import as_stored
from tasker_core.event_bridge import AnnouncedStep, EventBridge, EventNames, checkpoint_event
from tasker_core.types.results import StepError, StepExecutionResult
from tasker_core.types.step_event import event_for

WAITING_EVENTS = 1_000
JOIN_SECONDS = 5.0

Publish = Callable[[], None]


class StepAnnouncer:
    """Observer of attempts that publishes events. An event without a listener costs only a lookup.

    `received`, `saved` and `ended` are called on the worker's loop: they are quick and never raise.

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
            step_uuid = attempt.claim.step_uuid
            self._publish(EventNames.STEP_CHECKPOINT_YIELD, lambda: (checkpoint_event(step_uuid, position),))

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


class ObservedRunner(AttemptRunner):
    """An `AttemptRunner` that notifies an announcer. Other parameters are those of `AttemptRunner`."""

    def __init__(self, *, observer: StepAnnouncer, **options: Any) -> None:
        super().__init__(**options)
        self._observer = observer

    async def run(self, attempt: Attempt) -> AttemptEnd:
        """Run the attempt as `AttemptRunner.run` does, and notify the observer of its start and end."""
        self._observer.received(attempt)
        end = await super().run(self._watched(attempt))
        self._observer.ended(attempt, end)
        return end

    def _watched(self, attempt: Attempt) -> Attempt:
        return replace(attempt, writes=_Watched(attempt.writes, self._observer))


class _Watched:
    """Writes of an attempt that notify the observer of checkpoints."""

    def __init__(self, writes: ClaimWrites, observer: StepAnnouncer) -> None:
        self._observer, self._writes = observer, writes
        self.begin, self.lock = writes.begin, writes.lock
        self.memo, self.children = writes.memo, writes.children

    async def save(self, attempt: Attempt, position: Checkpoint) -> Mapping[str, Any] | None:
        saved = await self._writes.save(attempt, position)
        if saved is not None:
            self._observer.saved(attempt, position)
        return saved


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
