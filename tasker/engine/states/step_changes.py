"""Every kind of change of a step: its path through the states, and what becomes of token and attempt.

The engine's SQL is generated from it (`python -m tools.lifecycle_sql`), and a test proves each path legal. A new kind
of change is a row here.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import cached_property
from typing import Final

from tasker.dataclasses import dataclass
from tasker.engine.states.step import OPEN_TO_OPERATORS, SETTLED, StepState
from tasker.engine.states.task import TaskState

_STEP, _TASK = StepState, TaskState

LETTERS: Final[Mapping[str, str]] = {
    _STEP.PENDING: "P",
    _STEP.ENQUEUED: "E",
    _STEP.IN_PROGRESS: "I",
    _STEP.ENQUEUED_FOR_ORCHESTRATION: "O",
    _STEP.ENQUEUED_AS_ERROR_FOR_ORCHESTRATION: "X",
    _STEP.WAITING_FOR_RETRY: "W",
    _STEP.COMPLETE: "C",
    _STEP.ERROR: "F",
    _STEP.CANCELLED: "K",
    _STEP.RESOLVED_MANUALLY: "R",
    _TASK.INITIALIZING: "N",
    _TASK.ENQUEUING_STEPS: "Q",
    _TASK.STEPS_IN_PROCESS: "S",
    _TASK.EVALUATING_RESULTS: "V",
    _TASK.WAITING_FOR_DEPENDENCIES: "D",
    _TASK.BLOCKED_BY_FAILURES: "B",
}
"""Steps and tasks share the letters of states with equal names. A stored letter never changes its meaning."""


StepPath = tuple[StepState, ...]
"""States of one write, beginning with the step's current one: the history shows the complete path (rule 10)."""


class Token(Enum):
    """Effect of a change on the fencing token of claims (rule 2)."""

    UNCHANGED = "unchanged"
    GROWS = "grows"
    GROWS_WHEN_LOST = "grows when the worker was lost"
    """The token is unchanged if the claim's own worker reports, so that a repeated report is recognized."""


class Attempts(Enum):
    """Effect of a change on the number of attempts."""

    UNCHANGED = "unchanged"
    COUNTED = "counted"
    RETURNED = "returned"
    """No handler has seen the claim, so it was not an attempt."""
    RESET = "reset"


@dataclass(frozen=True)
class StepChangeKind:
    """Kind of change of a step. SQL reads the boolean fields as `tasker.kind_FIELD(kind)`."""

    paths: tuple[StepPath, ...]
    """One path for each state in which the change is legal. A path that ends in `pending` is continued by `PLACES`."""
    token: Token = Token.GROWS
    attempts: Attempts = Attempts.UNCHANGED
    accepted_in: frozenset[StepState] = frozenset()
    """States in which the change, if it has the claim's token, is a repetition that was accepted before."""
    reports: bool = False
    """True: it reports the outcome of an attempt. The worker may park it; a refused report is stored as evidence."""
    ends_claim: bool = False
    """True: the worker that owns the claim requests it, so the worker is compared along with the token."""
    stores_result: bool = False
    stores_failure: bool = False
    settles: bool = False
    """True: the task may go on after it, by the word of the step; then it needs a plan of what follows."""
    drops_result: bool = False
    """True: it discards a parked result."""
    reopens: bool = False
    """True: it is an operator action that is also legal in a task in `error`, which then continues."""
    needs_parents: bool = False
    """True: it applies only to a step that waits for no other."""
    runs_ahead: bool = False
    """True: it completes a step that was never claimed, together with its last parents (`tasker.refuse_ahead`)."""
    notes_unserved: bool = False
    """True: its note may say that the worker lacks the handler (rule 16)."""
    leaves_task: bool = False
    """True: the counters and the state of the task do not change."""
    suspends: bool = False
    """True: the step stays in progress without a worker, until the event for which its handler waits."""
    keeps_state: bool = False
    """True: its result, if any, is what the handler reads at its next call (`context.state`, `context.event`)."""

    @cached_property
    def by_state(self) -> dict[StepState, StepPath]:
        """Path from each state in which the change is legal."""
        return {path[0]: path for path in self.paths}


_S = StepState


def _to(state: StepState) -> tuple[StepPath, ...]:
    return tuple((source, state) for source in OPEN_TO_OPERATORS)


CHANGES: Final[Mapping[str, StepChangeKind]] = {
    # Outcomes of an attempt: written at once (inline), or parked by the worker and settled by an orchestrator.
    "ok": StepChangeKind(
        (
            (_S.IN_PROGRESS, _S.ENQUEUED_FOR_ORCHESTRATION, _S.COMPLETE),
            (_S.ENQUEUED_FOR_ORCHESTRATION, _S.COMPLETE),
        ),
        Token.GROWS_WHEN_LOST,
        accepted_in=SETTLED,
        reports=True,
        ends_claim=True,
        stores_result=True,
    ),
    "retry": StepChangeKind(
        (
            (_S.IN_PROGRESS, _S.ENQUEUED_AS_ERROR_FOR_ORCHESTRATION, _S.WAITING_FOR_RETRY),
            (_S.ENQUEUED_AS_ERROR_FOR_ORCHESTRATION, _S.WAITING_FOR_RETRY),
        ),
        Token.GROWS_WHEN_LOST,
        accepted_in=SETTLED | {_S.PENDING, _S.ENQUEUED},  # promoted in between
        reports=True,
        ends_claim=True,
        stores_failure=True,
    ),
    "fail": StepChangeKind(
        (
            (_S.IN_PROGRESS, _S.ENQUEUED_AS_ERROR_FOR_ORCHESTRATION, _S.ERROR),
            (_S.ENQUEUED_AS_ERROR_FOR_ORCHESTRATION, _S.ERROR),
            (_S.ENQUEUED_FOR_ORCHESTRATION, _S.ERROR),
            (_S.PENDING, _S.ERROR),
            (_S.ENQUEUED, _S.ERROR),
        ),
        Token.GROWS_WHEN_LOST,
        accepted_in=SETTLED,
        reports=True,
        ends_claim=True,
        stores_failure=True,
        settles=True,
        drops_result=True,
    ),
    # Expires the steps of a stale task, in every waiting state, so that an operator decides.
    "expire": StepChangeKind(
        (
            (_S.PENDING, _S.ERROR),
            (_S.ENQUEUED, _S.ERROR),
            (_S.IN_PROGRESS, _S.ENQUEUED_AS_ERROR_FOR_ORCHESTRATION, _S.ERROR),
            (_S.WAITING_FOR_RETRY, _S.PENDING, _S.ERROR),
        ),
        stores_failure=True,
    ),
    # A worker has run the step before its parents' results were stored, and stores its own in the same write.
    "ahead": StepChangeKind(
        ((_S.PENDING, _S.ENQUEUED, _S.IN_PROGRESS, _S.ENQUEUED_FOR_ORCHESTRATION, _S.COMPLETE),),
        attempts=Attempts.COUNTED,
        stores_result=True,
        runs_ahead=True,
    ),
    # A claim that no handler has seen is released; one deferred by an open breaker waits.
    "release": StepChangeKind(
        ((_S.IN_PROGRESS, _S.ENQUEUED),),
        attempts=Attempts.RETURNED,
        ends_claim=True,
        leaves_task=True,
        notes_unserved=True,
    ),
    "defer": StepChangeKind(((_S.IN_PROGRESS, _S.WAITING_FOR_RETRY),), attempts=Attempts.RETURNED, ends_claim=True),
    # The handler asked to be called again later: neither a failure nor an attempt.
    "snooze": StepChangeKind(
        ((_S.IN_PROGRESS, _S.WAITING_FOR_RETRY),), attempts=Attempts.RETURNED, ends_claim=True, keeps_state=True
    ),
    # The handler waits for an event without its worker; then it is called again, in the same attempt.
    "suspend": StepChangeKind(((_S.IN_PROGRESS,),), ends_claim=True, suspends=True, keeps_state=True),
    "resume": StepChangeKind(
        ((_S.IN_PROGRESS, _S.WAITING_FOR_RETRY, _S.PENDING),), attempts=Attempts.RETURNED, keeps_state=True
    ),
    # Changes towards the queue, and back to pending.
    "promote": StepChangeKind(((_S.WAITING_FOR_RETRY, _S.PENDING),), Token.UNCHANGED),
    "unhold": StepChangeKind(((_S.PENDING,),), Token.UNCHANGED, needs_parents=True),
    "hold": StepChangeKind(((_S.ENQUEUED, _S.PENDING),), Token.UNCHANGED),
    # Operator actions.
    "reset": StepChangeKind(((_S.ERROR, _S.PENDING),), attempts=Attempts.RESET, reopens=True),
    "resolve": StepChangeKind(_to(_S.RESOLVED_MANUALLY), drops_result=True, reopens=True),
    "complete": StepChangeKind(_to(_S.COMPLETE), stores_result=True, reopens=True),
    "cancel": StepChangeKind(_to(_S.CANCELLED)),
    # Skips a step below one that failed, with the plan of that failure.
    "skip": StepChangeKind(((_S.PENDING, _S.CANCELLED),)),
}
"""Changes that can be requested of a step, by kind (`tasker.advance_v1`; `tasker.cancel_v1` cancels a whole task)."""

PLACES: Final[Mapping[str, StepChangeKind]] = {
    "claim": StepChangeKind(
        ((_S.PENDING, _S.ENQUEUED, _S.IN_PROGRESS), (_S.ENQUEUED, _S.IN_PROGRESS)), attempts=Attempts.COUNTED
    ),
    "enqueue": StepChangeKind(((_S.PENDING, _S.ENQUEUED), (_S.ENQUEUED,)), Token.UNCHANGED),
    "hold": StepChangeKind(((_S.PENDING,), (_S.ENQUEUED, _S.PENDING)), Token.UNCHANGED),
    "suspend": StepChangeKind(((_S.PENDING, _S.IN_PROGRESS),), attempts=Attempts.COUNTED),
    "wait": StepChangeKind(((_S.PENDING,),), Token.UNCHANGED),
}
"""Changes of a step that is ready or runs again (`tasker.place_ready`); `claim` is also the effect of a message."""


def parking_path(kind: str) -> StepPath:
    """Return the first part of a report's path, which its worker may write alone (`tasker.park_v1`)."""
    return CHANGES[kind].by_state[_S.IN_PROGRESS][:2]
