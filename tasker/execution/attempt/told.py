"""What plugins hear of an attempt."""

from __future__ import annotations

from collections.abc import Callable

from tasker.contracts.hook_arguments import AttemptEnded, AttemptStarted, End
from tasker.execution.attempt.values import Attempt, AttemptEnd, Cancelled, Deferred, Released
from tasker.services.engine.exchange import Result


class AttemptTeller:
    """Tells of attempts as they start and end. A worker has one only where somebody listens."""

    def __init__(
        self,
        started: Callable[[AttemptStarted], None] | None,
        ended: Callable[[AttemptEnded], None] | None,
    ) -> None:
        self._started, self._ended = started, ended

    def started(self, attempt: Attempt) -> None:
        """A claimed step is about to run."""
        if self._started is not None:
            self._started(_started(attempt))

    def ended(self, attempt: Attempt, end: AttemptEnd) -> None:
        """It came to this, which is about to be stored."""
        if self._ended is not None:
            self._ended(_ended(attempt, end))


def _started(attempt: Attempt) -> AttemptStarted:
    claim = attempt.claim
    return AttemptStarted(
        task_uuid=claim.task_uuid,
        step_uuid=claim.step_uuid,
        namespace=claim.namespace,
        template=attempt.plan.name,
        step=claim.name,
        handler=attempt.step.handler.callable,
        attempt=claim.attempt,
        max_attempts=claim.max_attempts,
        token=claim.token,
        worker=claim.worker,
        correlation_id=claim.correlation_id,
    )


def _ended(attempt: Attempt, end: AttemptEnd) -> AttemptEnded:
    if not isinstance(end, Result):
        return AttemptEnded(_started(attempt), _unreported(end))
    duration_ms, failure = end.duration_ms, end.failure
    if failure is None:
        return AttemptEnded(_started(attempt), "succeeded", duration_ms)
    told = (failure.error_type, failure.message, failure.retryable)
    return AttemptEnded(_started(attempt), "failed", duration_ms, *told)


def _unreported(end: AttemptEnd) -> End:
    kinds: tuple[tuple[type[AttemptEnd], End], ...] = (
        (Deferred, "deferred"),
        (Released, "released"),
        (Cancelled, "cancelled"),
    )
    return next((word for kind, word in kinds if isinstance(end, kind)), "lost")
