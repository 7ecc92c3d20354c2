"""Somebody else is quicker, between a look and the write that follows it; and breakers and pauses in the middle.

A docstring says which mutation of the SQL makes its story fail: each was tried.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.model.parts import Ending, Pause
from tests.support.random_plans import DECISION, Spec, create_steps
from tests.support.world.intruders import deed
from tests.support.world.stories import DONE, bring, only_task, start, states, take
from tests.support.world.world import LEASE_MS, World

ALPHA = Pause("alpha")
CHOOSE_X = Ending(create_steps("x"))


@pytest.fixture
def world(module_database_url: str) -> Iterator[World]:
    world = World(module_database_url)
    try:
        world.begin(2000, ["alpha"], [4, 4])
        yield world
    finally:
        world.close()


def start_decision(world: World) -> None:
    """`choice` runs and will choose `x`."""
    start(world, Spec("choice", DECISION), Spec("x", depends_on=("choice",)))
    take(world)["choice"].ending = CHOOSE_X


def meanwhile(world: World, kind: str, step: str = "choice", moment: str = "graph") -> None:
    """The attempt of the step is brought; between the look and the write somebody does this."""
    worker, attempt = world.workers[0], take(world)[step]
    act = deed(world, kind, world.model.step(attempt.key), ALPHA, CHOOSE_X.result)
    assert world.interrupt(moment, act, lambda: world.finish(worker, [attempt]))


def test_a_task_that_is_cancelled_while_a_step_decides_gets_no_new_steps(world: World) -> None:
    """cancel_v1 leaves the tokens as they are."""
    start_decision(world)
    meanwhile(world, "cancel")

    assert states(world) == {"choice": "cancelled"}
    assert world.verdicts["verdict cancelled"] == 1


def test_what_a_step_decides_while_its_namespace_is_paused_waits_for_the_end_of_the_pause(world: World) -> None:
    """place_ready looks at no pause."""
    start_decision(world)
    meanwhile(world, "pause")
    assert world.model.is_paused(world.model.step((only_task(world).id, "x")))

    world.resume(ALPHA)
    world.release_held(world.workers[0], list(world.namespaces.values()))
    assert states(world) == {"choice": "complete", "x": "in_progress"}


def test_of_a_person_and_a_step_that_decide_at_the_same_time_the_first_counts(world: World) -> None:
    """judge_changes lets the token stand when a person completes a step."""
    start_decision(world)
    meanwhile(world, "complete")

    assert states(world) == {"choice": "complete", "x": "enqueued"}
    assert world.verdicts["verdict stale"] == 1


def test_a_result_that_an_orchestrator_has_looked_at_is_not_taken_after_a_cancel(world: World) -> None:
    """cancel_v1 leaves the tokens as they are."""
    worker = start(world, Spec("a"), Spec("b", depends_on=("a",)))
    attempt = take(world)["a"]
    attempt.ending = DONE
    world.park(worker, [attempt])
    cancel = deed(world, "cancel", world.model.step(attempt.key), ALPHA, None)

    assert world.interrupt("parked", cancel, lambda: world.orchestrate(list(world.mail.results)))
    assert states(world) == {"a": "cancelled", "b": "cancelled"}


def test_a_step_that_its_worker_gives_back_while_a_sweep_thinks_it_lost_keeps_its_attempt(world: World) -> None:
    """judge_changes lets the token stand when a step is released."""
    start(world, Spec("a"))
    attempt = take(world)["a"]
    world.workers[0].alive = False
    world.tick(LEASE_MS + 1)
    give_back = deed(world, "give back", world.model.step(attempt.key), ALPHA, None)

    assert world.interrupt("sweep", give_back, lambda: world.sweep(world.workers[1]))
    step = world.model.step(attempt.key)
    assert (step.state, step.attempts, step.failures) == ("enqueued", 0, 0)


def test_a_step_behind_an_open_breaker_uses_no_attempt_however_often_it_is_deferred(world: World) -> None:
    """judge_changes counts a deferred attempt."""
    worker = start(world, Spec("a"), max_attempts=1)
    for _ in range(3):
        world.release(worker, [take(world)["a"]], delay_ms=1000)
        world.tick(1000)
        world.promote(worker)
    bring(world, a=DONE)

    assert states(world) == {"a": "complete"}


def test_a_deferred_step_that_is_due_in_a_pause_waits_for_its_end(world: World) -> None:
    """place_ready looks at no pause."""
    worker = start(world, Spec("a"))
    world.release(worker, [take(world)["a"]], delay_ms=1000)
    world.pause(ALPHA)
    world.tick(1000)
    world.promote(worker)
    assert states(world) == {"a": "pending"}

    world.resume(ALPHA)
    world.release_held(worker, list(world.namespaces.values()))
    bring(world, a=DONE)
    assert states(world) == {"a": "complete"}
