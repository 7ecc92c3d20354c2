"""What a failure means for the other steps of its task, by the word of the step that fails."""

from __future__ import annotations

from tests.integration.engine.protocol.failing.conftest import Run

CHAIN = """
  name: a, WORD
  name: b, dependencies: [a]
  name: c, dependencies: [b]
  name: z
"""


async def test_fail_task_starts_nothing_below_and_ends_the_task(run: Run) -> None:
    story = await run(CHAIN.replace("WORD", "on_failure: fail_task"), "a")

    assert story.states == {"a": "error", "b": "pending", "c": "pending", "z": "complete"}
    assert (story.end, story.dead_letters) == (("error", None), 1)


async def test_continue_runs_the_steps_below(run: Run) -> None:
    story = await run(CHAIN.replace("WORD", "on_failure: continue"), "a")

    assert story.states == {"a": "error:c", "b": "complete", "c": "complete", "z": "complete"}
    assert (story.end, story.dead_letters) == (("complete", "partial"), 0)


async def test_optional_step_is_not_missed(run: Run) -> None:
    story = await run(CHAIN.replace("WORD", "optional: true"), "a")

    assert story.states == {"a": "error:o", "b": "complete", "c": "complete", "z": "complete"}
    assert (story.end, story.dead_letters) == (("complete", None), 0)


async def test_skip_cascade_skips_everything_below(run: Run) -> None:
    story = await run(CHAIN.replace("WORD", "on_failure: skip_cascade"), "a")

    assert story.states == {"a": "error:k", "b": "cancelled:s", "c": "cancelled:s", "z": "complete"}
    assert (story.end, story.dead_letters) == (("complete", "partial"), 0)


async def test_failure_of_the_last_step_ends_the_task(run: Run) -> None:
    story = await run("name: a, on_failure: skip_cascade", "a")

    assert (story.states, story.end) == ({"a": "error:k"}, ("complete", "partial"))


async def test_other_failures_still_end_the_task(run: Run) -> None:
    story = await run(CHAIN.replace("WORD", "on_failure: continue"), "a", "z")

    assert (story.end, story.dead_letters) == (("error", None), 1)


async def test_partial_completion_is_skip_cascade_for_every_step(run: Run) -> None:
    story = await run(CHAIN.replace("WORD", "optional: true"), "a", "b", top="completion: partial")

    assert story.states == {"a": "error:o", "b": "error:k", "c": "cancelled:s", "z": "complete"}
    assert story.end == ("complete", "partial")


async def test_run_creates_its_step_after_the_failure_only(run: Run) -> None:
    steps = """
      name: pay, 'on_failure': {run: refund}
      name: ship, dependencies: [pay]
      name: refund
      name: mail, dependencies: [refund]
    """
    well = await run(steps)
    assert well.states == {"pay": "complete", "ship": "complete"}
    assert well.end == ("complete", None)

    story = await run(steps, "pay")
    assert story.states == {"mail": "complete", "pay": "error:h", "refund": "complete", "ship": "cancelled:s"}
    assert (story.end, story.dead_letters) == (("complete", "partial"), 0)

    worse = await run(steps, "pay", "refund")
    assert worse.states["mail"] == "pending"
    assert (worse.end, worse.dead_letters) == (("error", None), 1)


JOINED = """
  name: a, on_failure: skip_cascade
  name: b, dependencies: [a]
  name: c, on_failure: skip_cascade
  name: join, type: deferred_convergence, dependencies: [b, c]
  name: end, dependencies: [join]
"""


async def test_convergence_runs_if_one_of_its_parents_ends_well(run: Run) -> None:
    story = await run(JOINED, "a")

    assert story.ran == ["a", "c", "join", "end"]
    assert story.end == ("complete", "partial")


async def test_convergence_without_a_parent_that_ends_well_is_skipped(run: Run) -> None:
    for failing in (("a", "c"), ("c", "a")):
        story = await run(JOINED, *failing)

        assert story.ran == ["a", "c"]
        assert {story.states[name] for name in ("b", "join", "end")} == {"cancelled:s"}
        assert story.end == ("complete", "partial")


async def test_convergence_of_a_failure_branch_waits_for_it(run: Run) -> None:
    steps = """
      name: pay, on_failure: {run: refund}
      name: ship, dependencies: [pay]
      name: refund
      name: close, type: deferred_convergence, dependencies: [ship, refund]
    """
    assert (await run(steps)).ran == ["pay", "ship", "close"]
    assert (await run(steps, "pay")).ran == ["pay", "refund", "close"]

    story = await run(steps, "pay", "refund")
    assert (story.states["close"], story.end) == ("pending", ("error", None))
