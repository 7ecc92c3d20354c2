"""What the rule machine has found, as short stories: each one failed once.

A docstring says which mutation of the SQL makes its story fail: each was tried.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.model.parts import Ending
from tests.support.random_plans import BATCHABLE, DECISION, DEFERRED, WORKER, Spec, create_steps
from tests.support.world.rerunning import rerun
from tests.support.world.stories import FAILED, NOTHING, SILENT, bring, only_task, start, states, take
from tests.support.world.world import LEASE_MS, World


@pytest.fixture
def world(module_database_url: str) -> Iterator[World]:
    world = World(module_database_url)
    try:
        world.begin(2000, ["alpha"], [4])
        yield world
    finally:
        world.close()


def test_of_two_attempts_of_a_step_in_one_batch_the_current_one_counts(world: World) -> None:
    """advance_v1 takes of a step's changes the one with the oldest token (`order by i.s, i.k`, not `desc`)."""
    worker = start(world, Spec("a"))
    old = take(world)["a"]
    bring(world, a=FAILED)
    world.promote(worker)
    new = take(world)["a"]
    new.ending = Ending({"value": 1})
    world.finish(worker, [old, new])

    assert states(world) == {"a": "complete"}


def test_a_convergence_whose_parents_were_done_before_the_decision_starts_with_it(world: World) -> None:
    """expand_step does not say that new steps wait for nothing (`return 0`)."""
    join = Spec("join", DEFERRED, ("a", "branch"))
    start(world, Spec("a"), Spec("choice", DECISION, ("a",)), Spec("branch", depends_on=("choice",)), join)
    bring(world, a=Ending({"value": 1}))
    bring(world, choice=NOTHING)

    assert states(world) == {"a": "complete", "choice": "complete", "join": "in_progress"}


def test_two_decisions_for_nothing_that_race_make_their_convergence(world: World) -> None:
    """advance_v1 lets the graph's version grow only with new steps (`g.expand is not null`)."""
    ones, twos = Spec("x", depends_on=("one",)), Spec("y", depends_on=("two",))
    start(
        world, Spec("a"), Spec("one", DECISION, ("a",)), Spec("two", DECISION, ("a",)), ones, twos,
        Spec("join", DEFERRED, ("x", "y")),
    )  # fmt: skip
    bring(world, a=Ending({"value": 1}))
    held = take(world)
    held["one"].ending = held["two"].ending = NOTHING
    world.race((world.workers[0], held["one"]), (world.workers[0], held["two"]))

    assert states(world) == {"a": "complete", "one": "complete", "two": "complete", "join": "in_progress"}


def test_a_convergence_waits_for_a_decision_that_has_failed(world: World) -> None:
    """graph_v1 calls a step in `error` decided."""
    ones, twos = Spec("x", depends_on=("one",)), Spec("y", depends_on=("two",))
    start(
        world, Spec("a"), Spec("one", DECISION, ("a",)), Spec("two", DECISION, ("a",)), ones, twos,
        Spec("join", DEFERRED, ("x", "y")), retryable=False,
    )  # fmt: skip
    bring(world, a=Ending({"value": 1}))
    bring(world, one=FAILED)
    bring(world, two=Ending(create_steps("y")))
    bring(world, y=Ending({"value": 1}))
    assert "join" not in states(world)

    task = only_task(world)
    world.operate(task.steps["one"], "reset")
    bring(world, one=Ending(create_steps("x")))
    assert world.model.step((task.id, "join")).parents == {"x", "y"}


def test_a_parked_outcome_that_cannot_be_followed_leaves_no_result(world: World) -> None:
    """advance_v1 keeps the result of a parked step that fails."""
    worker = start(world, Spec("cut", BATCHABLE), Spec("part", WORKER, ("cut",)))
    attempt = take(world)["cut"]
    attempt.ending = SILENT
    world.park(worker, [attempt])
    world.orchestrate(list(world.mail.results))

    task = only_task(world)
    assert (task.state, task.steps["cut"].result) == ("error", None)


def test_resolving_one_of_two_failed_steps_keeps_the_end_of_the_task(world: World) -> None:
    """evaluate_tasks forgets that a task without a new state is as final as before (`n.path` alone)."""
    start(world, Spec("a"), Spec("b"), retryable=False)
    bring(world, a=FAILED, b=FAILED)
    task = only_task(world)
    world.operate(task.steps["a"], "resolve")

    assert task.state == "error"


def test_a_worker_that_is_handed_a_step_which_it_has_lost_holds_the_newer_claim_alone(world: World) -> None:
    """No mutation of the SQL: the model's worker had both in hand, where a worker keeps claims by their steps."""
    worker = start(world, Spec("a"))
    attempt = take(world)["a"]
    world.tick(LEASE_MS * 3)  # it beats, and is overdue
    world.sweep(worker)
    world.promote(worker)
    assert [each.row["token"] for each in worker.running] > [attempt.row["token"]]
    world.tick(1)
    assert states(world) == {"a": "in_progress"}


def test_a_rerun_publishes_no_event_of_a_reused_result(world: World) -> None:
    """violations_v1 wants an event of every accepted result, reused ones too (without `reused_from is null`)."""
    done = {"name": "done", "condition": "success", "delivery_mode": "durable"}
    start(world, Spec("a", publishes=(done,)), Spec("b", depends_on=("a",), publishes=(done,)))
    bring(world, a=Ending({"value": 1}))
    bring(world, b=Ending({"value": 2}))
    rerun(world, next(step for step in world.model.steps() if step.name == "b"))

    assert sorted(states(world).items()) == [("a", "complete"), ("b", "enqueued")]


def test_a_sweep_places_the_events_that_nobody_has_read(world: World) -> None:
    """Nobody but readers places events (Sweeper.sweep without `_place_events`)."""
    done = {"name": "done", "condition": "success", "delivery_mode": "durable"}
    worker = start(world, Spec("a", publishes=(done,)))
    bring(world, a=Ending({"value": 1}))
    unplaced = "select (select count(*) from tasker.unplaced_events), (select count(*) from tasker.event_positions)"
    assert world.run(world.connection.execute(unplaced)) == [(1, 0)]
    world.sweep(worker)

    assert world.run(world.connection.execute(unplaced)) == [(0, 1)]
