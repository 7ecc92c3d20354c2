"""Release of claims and backlogged steps, and repairs on demand."""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from tasker.clock import new_uuid
from tasker.db.connection import DataRefused
from tasker.engine.answers import BacklogAnswer
from tasker.engine.bisect import halved
from tasker.engine.calls import Engine
from tasker.engine.changes import StepChange, soonest
from tasker.engine.exchange import AdvanceResult, CompletingWorker
from tasker.engine.plans import PlanStore
from tasker.execution.in_flight import ReleasedClaim
from tasker.logging.lines import ids_of, log_line
from tasker.orchestration.changes import released_change, suspended_change
from tasker.orchestration.pending_work import FollowUp, PendingWork
from tasker.orchestration.results import ResultProcessor
from tasker.orchestration.sweep import Sweeper, SweepSettings

RELEASE_SLICE = 500
"""Number of backlogged steps of a namespace that one call releases."""
_log = logging.getLogger("tasker.worker")


class ClaimReleaser:
    """Release of a worker's claims, and enqueueing of backlogged steps of its namespaces.

    `caller` returns the worker with so many free slots. Follow-up work goes to `schedule` and `follow_up`.
    """

    def __init__(
        self,
        processor: ResultProcessor,
        engine: Engine,
        caller: Callable[[int], CompletingWorker],
        schedule: PendingWork,
        follow_up: FollowUp,
    ) -> None:
        self._processor, self._engine, self._caller = processor, engine, caller
        self._schedule, self._follow_up = schedule, follow_up

    async def give_back(self, given_back: Sequence[ReleasedClaim]) -> None:
        """Release these claims without using an attempt, and have workers woken that may take them.

        Raises `DatabaseError`: they may be released again.
        """
        due = await release_claims(self._processor, self._caller(0), given_back)
        self._schedule.wake_later(
            {
                released.claim.step_uuid: 0.0
                for released in given_back
                if released.delay_ms is None and released.suspension is None
            }
        )
        if due is not None:
            self._schedule.due_in(due)

    async def release_backlog(self, namespace_ids: Sequence[int], slots: int) -> BacklogAnswer:
        """Enqueue backlogged steps of these namespaces by rank while there is room; return claims like a claim call."""
        args = {**self._caller(slots).args(), "namespace_ids": namespace_ids, "limit": RELEASE_SLICE}
        answer = await self._engine.call_typed("backlog", args, BacklogAnswer)
        self._follow_up.advanced(answer)
        return answer


async def release_claims(
    processor: ResultProcessor, caller: CompletingWorker, given_back: Sequence[ReleasedClaim]
) -> int | None:
    """Release the claims; return the milliseconds until the first deferred one is due, or None.

    A step whose handler waits for an event is due at once: the event may have arrived before.

    A claim whose note the database refuses is released without it (rule 5).
    """

    async def release(part: Sequence[ReleasedClaim]) -> None:
        await processor.apply(
            [_change(released, released.note) for released in part],
            caller,
        )

    async def without_note(claim: ReleasedClaim, error: DataRefused) -> None:
        log_line(_log, logging.WARNING, "release_note_not_stored", ids_of(claim.claim) | {"error": str(error)})
        await processor.apply([_change(claim, {})], caller)

    await halved(given_back, release, without_note)
    return soonest(0 if released.suspension is not None else released.delay_ms for released in given_back)


def _change(released: ReleasedClaim, note: Mapping[str, str]) -> StepChange:
    if released.suspension is not None:
        return suspended_change(released.claim, released.suspension)
    return released_change(released.claim, note, released.delay_ms, released.snoozes, released.state)


class Repairs:
    """A sweep of everything, with the same functions, guards and counters as the periodic sweep."""

    def __init__(self, engine: Engine, plans: PlanStore, settings: SweepSettings) -> None:
        self._engine = engine
        everything = replace(settings, repair_ms=0, whole=True)
        self._woken = set[str]()
        self._sweeper = Sweeper(engine, ResultProcessor(engine, random), plans, random, everything, self._advanced)

    async def run(self) -> Counter[str]:
        """Repair everything inconsistent; return the number by kind, as `tasker.repairs` counts it.

        Raises `DatabaseError`; repairs made before that remain.
        """
        repaired = await self._sweeper.sweep(CompletingWorker(new_uuid()))
        if self._woken:
            await self._engine.wake(self._woken)
        return +repaired

    def _advanced(self, advanced: AdvanceResult) -> None:
        self._woken |= {*advanced.sent}
