"""Inputs and outcomes of one attempt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.defaults import VALUE_LIMIT_BYTES
from tasker.contracts.events.publishing import HandlerEvent
from tasker.contracts.execution import Claim, Failure, Success
from tasker.contracts.plan import Plan, StepPlan
from tasker.contracts.reporting import Reporter
from tasker.services.engine.exchange import Result

if TYPE_CHECKING:
    from tasker.execution.attempt.cancel import AttemptCancelFlag


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A position that a handler wants saved. Everything in it is storable JSON."""

    cursor: Any
    items_processed: int
    accumulated_results: Any = None
    events: Sequence[HandlerEvent] = ()
    """Events that the handler published up to this position; saved with it."""


class ClaimWrites(Protocol):
    """Writes about an attempt while the worker has its claim."""

    async def begin(self, attempt: Attempt) -> bool:
        """Restart the step's time, since its handler is called only now; return False when the claim was lost."""
        ...

    async def save(self, attempt: Attempt, position: Checkpoint) -> Mapping[str, Any] | None:
        """Save a position; return the stored checkpoint with its history, or None when the claim was lost."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Attempt:
    """One claimed step with everything that running it needs."""

    claim: Claim
    plan: Plan = field(repr=False)
    step: StepPlan = field(repr=False)
    task_context: Mapping[str, Any] = field(repr=False)
    dependency_results: Mapping[str, Any] = field(repr=False)
    cancel: AttemptCancelFlag
    writes: ClaimWrites
    result_limit_bytes: int = VALUE_LIMIT_BYTES
    reporter: Reporter | None = None


Ending: TypeAlias = Success | Failure | Checkpoint
"""Outcome of one call of a handler."""


def with_events(ending: Ending, events: Sequence[HandlerEvent]) -> Ending:
    """Return the outcome together with the events that the handler published."""
    return replace(ending, events=events) if events else ending


@dataclass(frozen=True, slots=True)
class UnreportedEnd:
    """An outcome without anything to report."""

    claim: Claim
    reason: str = ""


class AttemptCancelled(UnreportedEnd):
    """The task or the step was cancelled; the step's row says so already."""

    __slots__ = ()


class ClaimLost(UnreportedEnd):
    """The claim was lost: another worker has a newer token."""

    __slots__ = ()


class ClaimReleased(UnreportedEnd):
    """The step is to be released without using an attempt."""

    __slots__ = ()


class NoCapacity(ClaimReleased):
    """The step is to be released because no thread or child process was free in time."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class ClaimDeferred(UnreportedEnd):
    """A circuit breaker is open: the step is to be released and deferred, without using an attempt."""

    delay_ms: int = 0


AttemptEnd: TypeAlias = Result | UnreportedEnd
