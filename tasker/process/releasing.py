"""Release of claims, and enqueueing of backlogged steps for which there is room."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from tasker.db.connection import DataRefused
from tasker.execution.claims_in_hand import ReleasedClaim
from tasker.log_lines import ids_of, log_line
from tasker.orchestration.changes import released_change
from tasker.orchestration.results import ResultProcessor
from tasker.orchestration.schedule import FollowUp, PendingWork
from tasker.services.engine.answers import BacklogAnswer
from tasker.services.engine.calls import Engine
from tasker.services.engine.exchange import CompletingWorker
from tasker.services.engine.halving import halved

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
        """Release these claims without using an attempt. Raises `DatabaseError`: they may be released again."""
        due = await release_claims(self._processor, self._caller(0), given_back)
        if due is not None:
            self._schedule.due_in(due)

    async def release_held(self, namespace_ids: Sequence[int], slots: int) -> BacklogAnswer:
        """Enqueue backlogged steps of these namespaces by rank while there is room; return claims like a claim call."""
        args = {**self._caller(slots).args(), "namespace_ids": namespace_ids, "limit": RELEASE_SLICE}
        answer = await self._engine.call_typed("backlog", args, BacklogAnswer)
        self._follow_up.advanced(answer)
        return answer


async def release_claims(
    processor: ResultProcessor, caller: CompletingWorker, given_back: Sequence[ReleasedClaim]
) -> int | None:
    """Release the claims; return the milliseconds until the first deferred one is due, or None.

    A claim whose note the database refuses is released without it (rule 5).
    """

    async def release(part: Sequence[ReleasedClaim]) -> None:
        await processor.apply([released_change(each.claim, each.note, each.delay_ms) for each in part], caller)

    async def without_note(each: ReleasedClaim, error: DataRefused) -> None:
        log_line(_log, logging.WARNING, "release_note_not_stored", ids_of(each.claim) | {"error": str(error)})
        await processor.apply([released_change(each.claim, {}, each.delay_ms)], caller)

    await halved(given_back, release, without_note)
    return min((each.delay_ms for each in given_back if each.delay_ms is not None), default=None)
