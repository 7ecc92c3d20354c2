"""Short stories in the world: one task, one worker, told step by step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tasker.template.plan import RetryPolicy
from tests.support.model.parts import Ending, Task
from tests.support.random_plans import Spec, build_plan, create_steps
from tests.support.world.parts import Attempt, Worker
from tests.support.world.world import World

FAILED = Ending(failed=True)
DONE = Ending({"value": 1})
NOTHING = Ending(create_steps())
SILENT = Ending({"value": "said nothing of what to create"})


def start(world: World, *specs: Spec, **policy: Any) -> Worker:
    """One task of these steps."""
    plan = build_plan(*specs, namespace="alpha")
    retry = RetryPolicy(backoff="none", **policy)
    world.submit(replace(plan, steps=tuple(replace(step, retry=retry) for step in plan.steps)), [0], ["key"])
    return world.workers[0]


def take(world: World) -> dict[str, Attempt]:
    """Claim all there is; what the worker holds, by step."""
    if world.mail.hints:
        world.claim(world.workers[0], list(world.mail.hints))
    return {attempt.key[1]: attempt for attempt in world.workers[0].running}


def bring(world: World, **endings: Ending) -> None:
    """The steps named end like this, in one batch."""
    held = take(world)
    for step, ending in endings.items():
        held[step].ending = ending
    world.finish(world.workers[0], [held[step] for step in endings])


def states(world: World) -> dict[str, str]:
    return {step.name: step.state for step in world.model.steps()}


def only_task(world: World) -> Task:
    (task,) = world.model.tasks.values()
    return task
