"""Putting steps where others find them: claims that are given back, and held steps for which there is room."""

from __future__ import annotations

from collections.abc import Sequence

from tasker.execution.held import GivenBack
from tasker.orchestration.changes import released_change
from tasker.orchestration.results import Processor
from tasker.services.engine import Answer, Engine
from tasker.services.exchange import Caller


async def give_back(processor: Processor, caller: Caller, given_back: Sequence[GivenBack]) -> int | None:
    """Release the claims; milliseconds until the first of those that wait is due."""
    await processor.apply([released_change(each.claim, each.note, each.delay_ms) for each in given_back], caller)
    return min((each.delay_ms for each in given_back if each.delay_ms is not None), default=None)


async def release_held(engine: Engine, caller: Caller, namespace_ids: Sequence[int]) -> Answer:
    """Enqueue held steps of these namespaces by rank; answers like a claim."""
    ids = ",".join(map(str, namespace_ids))
    return await engine.call("backlog", f'{caller.fields()},"namespace_ids":[{ids}]}}')
