"""What happens between a look and what follows it: somebody else is quicker."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from tasker.engine.expansion.outcomes import OutcomeError
from tasker.errors import StateMachineError
from tests.support.model.graph import CHOOSERS
from tests.support.model.parts import PARKED, Pause, Step
from tests.support.world.parts import Attempt, Worker
from tests.support.world.world import ACTOR, World

Deed = Callable[[], Awaitable[object]]
DEEDS = ("cancel", "pause", "resume", "reset", "resolve", "complete", "promote", "give back")


def moments(world: World) -> list[str]:
    """The looks that something could come between now: `find` of a sweep, `parked` and `graph` of results."""
    parked = [step for step in world.model.steps(*PARKED) if step.plan.type in CHOOSERS]
    found = ["sweep", *(["parked"] if world.mail.results else []), *(["graph"] if deciding(world) else [])]
    return [*found, *(["graph of parked"] if parked and world.mail.results else [])]


def deciding(world: World) -> list[tuple[Worker, Attempt]]:
    """The attempts in workers' hands that may create steps."""
    held = [(worker, attempt) for worker in world.workers for attempt in worker.running if not attempt.parked]
    return [pair for pair in held if world.model.step(pair[1].key).plan.type in CHOOSERS]


def deed(world: World, kind: str, step: Step, pause: Pause, result: Any) -> Deed:
    """What somebody does with the step, its task, or what can be paused. A refusal is no surprise."""

    async def act() -> None:
        with suppress(StateMachineError, OutcomeError):
            await _act(world, kind, step, pause, result)

    return act


async def _act(world: World, kind: str, step: Step, pause: Pause, result: Any) -> None:
    if kind == "cancel":
        await world.tasks.cancel(step.task.id, reason="by the test")
    elif kind in ("pause", "resume"):
        await world.engine.call(kind, {**pause.args, **ACTOR})
    elif kind == "promote":
        await world.engine.call("due", world.caller_fields(world.workers[0], 0))
    elif kind == "give back":
        await world.give_back(step)
    else:
        values = (result,) if kind == "complete" else ()
        await getattr(world.operators, kind)(step.task.id, step.name, *values, **ACTOR)
