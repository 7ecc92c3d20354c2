"""Putting steps where others find them: claims that are given back, and held steps for which there is room."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from tasker.db.connection import DataRefused
from tasker.execution.held import GivenBack
from tasker.orchestration.changes import released_change
from tasker.orchestration.halving import halved
from tasker.orchestration.results import Processor
from tasker.services.engine.calls import Answer, Engine
from tasker.services.engine.exchange import Caller

_log = logging.getLogger("tasker.worker")


async def give_back(processor: Processor, caller: Caller, given_back: Sequence[GivenBack]) -> int | None:
    """Release the claims; milliseconds until the first of those that wait is due.

    A claim whose note the database refuses is released without it (rule 5).
    """

    async def release(part: Sequence[GivenBack]) -> None:
        await processor.apply([released_change(each.claim, each.note, each.delay_ms) for each in part], caller)

    async def without_note(each: GivenBack, error: DataRefused) -> None:
        _log.warning("note_refused step=%s task=%s reason=%s", each.claim.name, each.claim.task_uuid, error)
        await processor.apply([released_change(each.claim, {}, each.delay_ms)], caller)

    await halved(given_back, release, without_note)
    return min((each.delay_ms for each in given_back if each.delay_ms is not None), default=None)


async def release_held(engine: Engine, caller: Caller, namespace_ids: Sequence[int]) -> Answer:
    """Enqueue held steps of these namespaces by rank; answers like a claim."""
    ids = ",".join(map(str, namespace_ids))
    return await engine.call("backlog", f'{caller.fields()},"namespace_ids":[{ids}]}}')
