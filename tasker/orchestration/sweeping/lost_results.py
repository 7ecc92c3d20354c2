"""Which parked results have lost their message, and which only wait for an orchestrator that has much to do."""

from __future__ import annotations

from collections.abc import Sequence

from tasker.db.queries import query
from tasker.errors import MessagingError
from tasker.services.engine.calls import Engine

BACKLOG_GRACES = 12
"""So many times the grace of a parked result it may wait behind other messages."""


async def steps_without_message(engine: Engine, steps: Sequence[str], grace_ms: int) -> Sequence[str]:
    """Those of these parked steps that a sweep is to end: whoever ends what an orchestrator is about to end only does
    the same at the same time.

    While messages wait and an orchestrator lives, one that was parked within `BACKLOG_GRACES` times `grace_ms`
    milliseconds may be among them. Nobody can look for it there.
    """
    queue = engine.messaging.names.step_results
    try:
        waiting = (await engine.messaging.queue_stats(queue)).depth
    except MessagingError:
        return steps
    if not waiting:
        return steps
    args = {"steps": list(steps), "queue": queue, "ms": BACKLOG_GRACES * grace_ms}
    return [step for (step,) in await engine.connection.execute(query("tasks", "parked_for_long"), args)]
