"""Every kind of move that a step makes: the one table of paths, token and attempt, for Python and for SQL.

The engine's SQL is generated from it (`python -m tools.lifecycle_sql`), and a test proves each path legal: a new kind
is a row here.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import cached_property
from typing import Final

from tasker.contracts.dataclasses import dataclass
from tasker.lifecycle.machines.step import OPEN_TO_OPERATORS, SETTLED, StepState

StepPath = tuple[StepState, ...]
"""The states of one write, beginning with the one that the step is in: the history shows the whole way (rule 10)."""


class Token(Enum):
    """What a move does to the number that fences claims (rule 2)."""

    KEPT = "kept"
    GROWS = "grows"
    GROWS_WHEN_LOST = "grows when the worker was lost"
    """Kept when the claim's own worker brings it: so a repeated report is known to be one."""


class Attempts(Enum):
    """What a move does to the number of attempts."""

    KEPT = "kept"
    COUNTED = "counted"
    GIVEN_BACK = "given back"
    """No handler has seen the claim: it was no attempt."""
    FORGOTTEN = "forgotten"


@dataclass(frozen=True)
class StepChangeKind:
    """One kind of move. The fields that are True or False are asked for in SQL as `tasker.kind_FIELD(kind)`."""

    paths: tuple[StepPath, ...]
    """One for each state from which it is legal. A path that ends in `pending` goes on by the `PLACES`."""
    token: Token = Token.GROWS
    attempts: Attempts = Attempts.KEPT
    accepted_in: frozenset[StepState] = frozenset()
    """With the token of the claim in these states: brought a second time, and accepted before."""
    reports: bool = False
    """What an attempt came to. Its worker may park it; what is refused is kept as evidence."""
    ends_claim: bool = False
    """The worker that has the claim asks for it, so it is compared along with the token."""
    stores_result: bool = False
    stores_failure: bool = False
    drops_result: bool = False
    """A result that was parked is not accepted after all."""
    reopens: bool = False
    """An operator's: legal in a task that ended in `error` too, which it lets go on."""
    needs_parents: bool = False
    """Only for a step that waits for no other."""
    notes_unserved: bool = False
    """Its note may say that its worker lacks the handler (rule 16)."""
    leaves_task: bool = False
    """The counters and the state of its task stay as they are."""

    @cached_property
    def by_state(self) -> dict[StepState, StepPath]:
        """The path from each state in which the move is legal."""
        return {path[0]: path for path in self.paths}


_S = StepState


def _to(state: StepState) -> tuple[StepPath, ...]:
    return tuple((source, state) for source in OPEN_TO_OPERATORS)


CHANGES: Final[Mapping[str, StepChangeKind]] = {
    # What an attempt came to: written at once (inline), or parked by the worker and settled by an orchestrator.
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
        accepted_in=SETTLED | {_S.PENDING, _S.ENQUEUED},  # promoted meanwhile
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
        drops_result=True,
    ),
    # Of a task that nothing moves any more, which is then for a person: what was to move it, whatever that is.
    "expire": StepChangeKind(
        (
            (_S.PENDING, _S.ERROR),
            (_S.ENQUEUED, _S.ERROR),
            (_S.IN_PROGRESS, _S.ENQUEUED_AS_ERROR_FOR_ORCHESTRATION, _S.ERROR),
            (_S.WAITING_FOR_RETRY, _S.PENDING, _S.ERROR),
        ),
        stores_failure=True,
    ),
    # A claim that no handler has seen goes back; one that an open breaker puts off waits.
    "release": StepChangeKind(
        ((_S.IN_PROGRESS, _S.ENQUEUED),),
        attempts=Attempts.GIVEN_BACK,
        ends_claim=True,
        leaves_task=True,
        notes_unserved=True,
    ),
    "defer": StepChangeKind(((_S.IN_PROGRESS, _S.WAITING_FOR_RETRY),), attempts=Attempts.GIVEN_BACK, ends_claim=True),
    # Towards the queue, and back to the held steps.
    "promote": StepChangeKind(((_S.WAITING_FOR_RETRY, _S.PENDING),), Token.KEPT),
    "unhold": StepChangeKind(((_S.PENDING,),), Token.KEPT, needs_parents=True),
    "hold": StepChangeKind(((_S.ENQUEUED, _S.PENDING),), Token.KEPT),
    # Operators.
    "reset": StepChangeKind(((_S.ERROR, _S.PENDING),), attempts=Attempts.FORGOTTEN, reopens=True),
    "resolve": StepChangeKind(_to(_S.RESOLVED_MANUALLY), drops_result=True, reopens=True),
    "complete": StepChangeKind(_to(_S.COMPLETE), stores_result=True, reopens=True),
    "cancel": StepChangeKind(_to(_S.CANCELLED)),
}
"""What a step can be asked to do, by its kind (`tasker.advance_v1`; `tasker.cancel_v1` cancels a whole task)."""

PLACES: Final[Mapping[str, StepChangeKind]] = {
    "claim": StepChangeKind(
        ((_S.PENDING, _S.ENQUEUED, _S.IN_PROGRESS), (_S.ENQUEUED, _S.IN_PROGRESS)), attempts=Attempts.COUNTED
    ),
    "enqueue": StepChangeKind(((_S.PENDING, _S.ENQUEUED), (_S.ENQUEUED,)), Token.KEPT),
    "hold": StepChangeKind(((_S.PENDING,),), Token.KEPT),
    "wait": StepChangeKind(((_S.PENDING,),), Token.KEPT),
}
"""Where a step goes that is ready, or to run again (`tasker.place_ready`); `claim` is also what a hint is for."""


def parking_path(kind: str) -> StepPath:
    """The first part of what a report does, which its worker may do alone (`tasker.park_v1`)."""
    return CHANGES[kind].by_state[_S.IN_PROGRESS][:2]
