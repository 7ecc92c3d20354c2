"""Distinction of parked results with a lost message from those that wait for a busy orchestrator."""

from __future__ import annotations

from collections.abc import Sequence

from tasker.db.queries import query
from tasker.errors import MessagingError
from tasker.services.engine.calls import Engine

BACKLOG_GRACES = 12
"""Factor of a parked result's grace for which it may wait behind other messages."""


async def steps_without_message(engine: Engine, steps: Sequence[str], grace_ms: int) -> Sequence[str]:
    """Return those of these parked steps that a sweep must end, because no message will.

    A sweep that ends a step with a waiting message would duplicate an orchestrator's work. While messages wait and an
    orchestrator lives, the message of a step that was parked within `BACKLOG_GRACES` times `grace_ms` milliseconds may
    be among them, and no query can find it there.
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
