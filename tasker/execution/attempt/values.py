"""What goes into running one attempt, and what comes out."""

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
    """What the handler published itself up to here; kept with the position."""


class ClaimWrites(Protocol):
    """What is written about an attempt while it has its claim."""

    async def begin(self, attempt: Attempt) -> bool:
        """Count the step's time from now on, since its handler is called only now; False when the claim is no longer
        ours."""
        ...

    async def save(self, attempt: Attempt, position: Checkpoint) -> Mapping[str, Any] | None:
        """Save a position; the stored checkpoint with its history, or None when the claim is no longer ours."""
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
"""What one call of a handler came to."""


def with_events(ending: Ending, events: Sequence[HandlerEvent]) -> Ending:
    """The same, together with the events that the handler published itself."""
    return replace(ending, events=events) if events else ending


@dataclass(frozen=True, slots=True)
class UnreportedEnd:
    """The attempt came to nothing that may be reported."""

    claim: Claim
    reason: str = ""


class AttemptCancelled(UnreportedEnd):
    """The task or the step was cancelled: its row says so already."""

    __slots__ = ()


class ClaimLost(UnreportedEnd):
    """The step is no longer ours: somebody else holds a newer token."""

    __slots__ = ()


class ClaimReleased(UnreportedEnd):
    """The step is to be given back; no attempt was used."""

    __slots__ = ()


class NoCapacity(ClaimReleased):
    """It is to be given back because no thread or child process was free for it in time."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class ClaimDeferred(UnreportedEnd):
    """A circuit breaker is open: the step is to be given back for later; no attempt was used."""

    delay_ms: int = 0


AttemptEnd: TypeAlias = Result | UnreportedEnd
