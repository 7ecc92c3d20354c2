"""The attempt of a step, its cancel flag and the ways in which it can end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from tasker.dataclasses import dataclass
from tasker.engine.exchange import Result
from tasker.handlers.claims import Claim, Failure, HandlerEvent, Success, Suspension
from tasker.handlers.starting import TaskStarter
from tasker.json_values import VALUE_LIMIT_BYTES
from tasker.logging.current_step import Reporter, running
from tasker.template.plan import Plan, StepPlan

if TYPE_CHECKING:
    from tasker.execution.attempt.transactions import AttemptTransaction
    from tasker.handlers.calls import HandlerCalls
    from tasker.resources.registry import AttemptResources


class AttemptTask(asyncio.Task[None]):
    """A task that remembers whose handler cancelled it."""

    cancelled_by: Claim | None = None
    """The claim of the handler that called `cancel` last; None where no handler did."""

    def cancel(self, msg: Any | None = None) -> bool:
        """Cancel the task, as `asyncio.Task.cancel` does."""
        self.cancelled_by = running.get()
        return super().cancel(msg)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A position that a handler wants saved. Everything in it is storable JSON."""

    cursor: Any
    items_processed: int
    accumulated_results: Any = None
    events: Sequence[HandlerEvent] = ()
    """Events that the handler published up to this position; saved with it."""


@dataclass(frozen=True, slots=True)
class Snooze:
    """Request of a handler to be called again after `delay_ms`; the step fails above `limit` of them."""

    delay_ms: int
    reason: str
    limit: int
    state: Mapping[str, Any] | None = None
    """What its next call reads as `context.state`, storable JSON; None keeps what is stored."""
    events: Sequence[HandlerEvent] = ()
    """Events that the handler published before: they are not kept, because it is called again from the top."""


class ClaimWrites(Protocol):
    """Writes about an attempt while the worker has its claim."""

    async def begin(self, attempt: Attempt) -> bool:
        """Restart the step's time, since its handler is called only now; return False when the claim was lost."""
        ...

    async def save(self, attempt: Attempt, position: Checkpoint) -> Mapping[str, Any] | None:
        """Save a position; return the stored checkpoint with its history, or None when the claim was lost."""
        ...

    async def lock(self, attempt: Attempt, action: str, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Take, renew or release a lock of the handler; return the answer of `tasker.ACTION_lock_v1`."""

    async def children(self, attempt: Attempt, page: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a page of the child tasks of a step of the task (`tasker.children_v1`)."""
        ...

    async def memo(self, attempt: Attempt, action: str, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Recall or remember a result of the step; return the answer of `tasker.ACTION_memo_v1`."""
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
    inputs: Mapping[str, Any] | None = field(default=None, repr=False)
    """Evaluated `inputs` of the step; None: the handler reads the task's context."""
    resources: AttemptResources | None = field(default=None, repr=False)
    """Resources of the worker as this attempt uses them; None for a worker without any."""
    calls: Callable[[Attempt], HandlerCalls] | None = field(default=None, repr=False)
    """Makes the calls of the handler to its worker; None: no worker runs it."""
    transaction: AttemptTransaction | None = field(default=None, repr=False)
    """Transaction of a handler that completes its step with it; None for all others."""
    starter: TaskStarter | None = field(default=None, repr=False)
    """Creator of the tasks that the handler starts; None: it can start none."""
    lists: dict[str, list[Any]] | None = field(default=None, repr=False)
    """Lists of steps with `for_each` that other instances of the task have evaluated here, by their expressions."""


Ending: TypeAlias = Success | Failure | Checkpoint | Snooze | Suspension
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
    """The task or the step was cancelled; the step's row has that state already."""

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


@dataclass(frozen=True, slots=True)
class ClaimSnoozed(ClaimDeferred):
    """The handler asked to be called again: as deferred, and counted up to `limit`."""

    limit: int = 0
    state: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ClaimSuspended(UnreportedEnd):
    """The handler waits for an event: its step is suspended."""

    suspension: Suspension | None = None


AttemptEnd: TypeAlias = Result | UnreportedEnd


class AttemptCancelFlag:
    """Flag that stops one attempt.

    Async handlers are cancelled, child processes killed, threads see `context.cancelled`. Call `set` on the event
    loop's thread only (from other threads: `loop.call_soon_threadsafe(flag.set)`); `is_set` may be called from any
    thread.
    """

    __slots__ = ("_end", "_reason", "_up", "began", "wake")

    def __init__(self) -> None:
        self.began = False
        """True once the handler was called, or is about to be."""
        self._end: type[UnreportedEnd] | None = None
        self._reason = ""
        self._up = False
        self.wake: Callable[[type[UnreportedEnd]], object] | None = None
        """Callback that `set` calls with its end; the code that runs the handler installs it meanwhile."""

    def is_set(self) -> bool:
        """Return True when the handler must stop: it was cancelled, or its time is up."""
        return self._up

    def set(self, end: type[UnreportedEnd] = AttemptCancelled, reason: str = "stopped while its handler ran") -> None:
        """Stop the attempt, which ends as `end` (`AttemptCancelled`, `ClaimLost` or `ClaimReleased`).

        The first call decides; later calls have no effect.
        """
        if self._end is not None:
            return
        self._end, self._reason, self._up = end, reason, True
        if self.wake is not None:
            self.wake(end)

    def time_is_up(self) -> None:
        """Signal the handler to stop because its attempt has timed out."""
        self._up = True

    def end_of(self, claim: Claim) -> UnreportedEnd | None:
        """Return the outcome of this claim's attempt after `set`, or None if `set` was not called."""
        return None if self._end is None else self._end(claim, self._reason)

    def may_save(self) -> bool:
        """Return False when another worker may have the step. A step to be released may still save its position."""
        return self._end is None or self._end is ClaimReleased
