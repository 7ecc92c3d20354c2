"""A failover to a standby that has not got the last commit: who was answered believes in a claim that never was."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tasker.engine.fleet_rules import DEFAULT_RULES, shared_arguments
from tests.support.world.parts import Attempt, Worker
from tests.support.world.world import World


def lose_claim(world: World, worker: Worker, hints: Sequence[dict[str, Any]]) -> None:
    """The worker is answered claims for these hints, whose commit is lost; whoever claims next gets the same tokens."""
    args = {
        **shared_arguments(DEFAULT_RULES),
        **world.caller_fields(worker),
        "steps": [hint["step"] for hint in hints][: worker.slots],
    }
    answer = world.run(_rolled_back(world, args))
    world.check()
    rows = [row for row in answer.get("claims") or () if row["step"] in world.names]
    worker.running += [Attempt(world.names[row["step"]], row, worker.identity) for row in rows]
    world.faults["commit lost"] += bool(rows)


async def _rolled_back(world: World, args: dict[str, Any]) -> dict[str, Any]:
    await world.connection.execute("begin")
    try:
        return await world.connection.call("tasker.claim_v1(%s::jsonb)", args)
    finally:
        await world.connection.execute("rollback")
