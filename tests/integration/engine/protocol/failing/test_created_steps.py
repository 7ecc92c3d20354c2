"""Words of steps that create others, of instances, and of conditions below a step that failed."""

from __future__ import annotations

from tests.integration.engine.protocol.failing.conftest import Run
from tests.support.random_plans import create_batches, create_steps

DECISION = """
  name: route, type: decision, WORD
  name: left, dependencies: [route]
  name: beside
  name: join, type: deferred_convergence, dependencies: [route, left, beside]
  name: end, dependencies: [join]
"""


async def test_decision_that_goes_on_counts_as_one_without_branches(run: Run) -> None:
    story = await run(DECISION.replace("WORD", "on_failure: continue"), "route")

    assert "left" not in story.states
    assert story.ran == ["beside", "route", "join", "end"]
    assert story.end == ("complete", "partial")


async def test_decision_that_skips_leaves_its_convergence_to_the_others(run: Run) -> None:
    steps = DECISION.replace("WORD", "on_failure: skip_cascade")
    story = await run(steps, "route")
    assert story.ran == ["beside", "route", "join", "end"]

    alone = steps.replace("  name: beside\n", "").replace(", beside", "")
    story = await run(alone, "route")
    assert story.states == {"route": "error:k"}
    assert story.end == ("complete", "partial")


BATCHES = """
  name: cut, type: batchable
  name: work, type: batch_worker, dependencies: [cut], on_failure: WORD
  name: sum, type: deferred_convergence, dependencies: [work]
  name: end, dependencies: [sum]
"""
TWO = {"cut": create_batches("work", 2)}


async def test_convergence_of_batches_sees_the_workers_that_did_not_fail(run: Run) -> None:
    for word in ("continue", "skip_cascade"):
        story = await run(BATCHES.replace("WORD", word), "work_001", results=TWO)

        assert story.ran == ["cut", "work_001", "work_002", "sum", "end"]
        assert story.end == ("complete", "partial")


async def test_batches_that_all_fail_skip_their_convergence_or_not(run: Run) -> None:
    story = await run(BATCHES.replace("WORD", "skip_cascade"), "work_001", "work_002", results=TWO)
    assert {story.states["sum"], story.states["end"]} == {"cancelled:s"}
    assert story.end == ("complete", "partial")

    story = await run(BATCHES.replace("WORD", "continue"), "work_001", "work_002", results=TWO)
    assert story.states["end"] == "complete"


async def test_condition_below_a_skipped_step_is_skipped_with_its_convergence(run: Run) -> None:
    steps = """
      name: a, on_failure: skip_cascade
      name: b, dependencies: [a], when: "true"
      name: other
      name: join, type: deferred_convergence, dependencies: [b, other]
    """
    chosen = {"b.when": create_steps("b")}
    assert (await run(steps, results=chosen)).ran == ["a", "other", "b.when", "b", "join"]

    story = await run(steps, "a", results=chosen)
    assert story.states == {
        "a": "error:k", "b.when": "cancelled:s", "other": "complete", "join": "complete"
    }  # fmt: skip
    assert story.end == ("complete", "partial")

    alone = steps.replace("      name: other\n", "").replace(", other", "")
    story = await run(alone, "a", results=chosen)
    assert story.states == {"a": "error:k", "b.when": "cancelled:s"}


async def test_branch_that_also_waits_for_a_skipped_step_is_not_created(run: Run) -> None:
    steps = """
      name: a, on_failure: skip_cascade
      name: route, type: decision
      name: left, dependencies: [route, s]
      name: s, dependencies: [a]
      name: join, type: deferred_convergence, dependencies: [route, left]
    """
    story = await run(steps, "a", results={"route": create_steps("left")})

    assert "left" not in story.states
    assert story.states["join"] == "complete"
    assert story.end == ("complete", "partial")


async def test_instance_of_a_list_follows_the_word_of_its_step(run: Run) -> None:
    steps = """
      name: each, for_each: "[1, 2]", on_failure: continue
      name: sum, type: deferred_convergence, dependencies: [each]
    """
    story = await run(steps, "each_002", results={"each.each": create_batches("each", 2)})

    assert story.states["each_002"] == "error:c"
    assert (story.states["sum"], story.end) == ("complete", ("complete", "partial"))


async def test_convergence_of_a_branch_waits_for_a_decision_that_runs_another_step(run: Run) -> None:
    steps = """
      name: route, type: decision, on_failure: {run: plan_b}
      name: left, dependencies: [route]
      name: plan_b
      name: join, type: deferred_convergence, dependencies: [route, left, plan_b]
    """
    assert (await run(steps, results={"route": create_steps("left")})).ran == ["route", "left", "join"]

    story = await run(steps, "route")
    assert story.ran == ["route", "plan_b", "join"]
    assert story.end == ("complete", "partial")
