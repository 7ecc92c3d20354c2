"""Steps of `finally`: when they run, what they read, and in which state their task ends."""

from __future__ import annotations

import pytest

from tests.integration.engine.protocol.failing.conftest import Begin, Run, Story
from tests.support.engine_fixture import Item, fail, ok, operator

STEPS = """
  name: a
  name: b, dependencies: [a]
  name: report
"""
TOP = "finally: [report]"


def cancel(story: Story) -> Item:
    lab = story.orchestra.lab
    return lab.one.call("cancel", lab.one.args(task=story.task, reason="enough", actor="ada"))


async def test_last_step_runs_after_success_and_the_task_is_complete(run: Run) -> None:
    story = await run(STEPS, top=TOP)

    assert story.ran == ["a", "b", "report"]
    assert story.states == {"a": "complete", "b": "complete", "report": "complete"}
    assert (story.end, story.dead_letters) == (("complete", None), 0)


async def test_last_step_runs_after_a_failure_and_the_task_is_in_error(run: Run) -> None:
    story = await run(STEPS, "a", top=TOP)

    assert story.ran == ["a", "report"]
    assert story.states == {"a": "error", "b": "pending", "report": "complete"}
    assert (story.end, story.dead_letters) == (("error", None), 1)


async def test_last_step_that_fails_ends_the_task_in_error_unless_it_is_optional(run: Run) -> None:
    story = await run(STEPS, "report", top=TOP)
    assert (story.end, story.dead_letters) == (("error", None), 1)

    story = await run(STEPS.replace("report", "report, optional: true"), "report", top=TOP)
    assert story.states["report"] == "error:o"
    assert (story.end, story.dead_letters) == (("complete", None), 0)


async def test_last_step_runs_after_a_cancel_and_the_task_ends_cancelled(begin: Begin) -> None:
    story = begin(STEPS, TOP)
    assert cancel(story)["state"] == "steps_in_process"
    story.orchestra.lab.check()

    await story.run()

    assert story.states == {"a": "cancelled", "b": "cancelled", "report": "complete"}
    assert (story.end, story.dead_letters) == (("cancelled", None), 0)


@pytest.mark.parametrize("begins", ["before", "after"])
async def test_last_step_runs_if_the_parent_of_the_task_ends(begin: Begin, begins: str) -> None:
    """The end of a parent at the deadline of both comes when the last steps run."""
    story = begin(STEPS, TOP)
    lab = story.orchestra.lab
    if begins == "before":
        cancel(story)
    columns = "subject, kind, due_at, task_uuid, token"
    lab.one.execute(f"insert into tasker.timers ({columns}) values (%s, 'p', now(), %s, 0)", story.task, story.task)
    lab.one.call("due", lab.one.args(limit=100, turn_ms=4000, late_ms=0))
    assert lab.observer.value("select count(*) from tasker.timers where kind = 'p'") == 0

    await story.run()

    assert story.states == {"a": "cancelled", "b": "cancelled", "report": "complete"}
    assert story.end == ("cancelled", None)


@pytest.mark.parametrize("first", ["cancel", "success"])
async def test_cancel_while_last_steps_run_ends_them(begin: Begin, first: str) -> None:
    story = begin("name: a\nname: report", TOP)
    if first == "cancel":
        cancel(story)
    else:
        (claim,) = story.orchestra.lab.one.take()
        await story.report(claim)
    assert story.states["report"] == "enqueued"

    assert cancel(story)["state"] == "cancelled"

    story.orchestra.lab.check()
    assert (story.states["report"], story.end) == ("cancelled", ("cancelled", None))


async def test_last_steps_run_again_after_a_repair(begin: Begin) -> None:
    story = begin(STEPS, TOP)
    lab = story.orchestra.lab
    await story.run(["a"])

    lab.one.advance(operator("reset", lab.steps(story.task)["a"], n={"actor": "ada"}))
    lab.check()
    await story.run()

    assert story.ran == ["a", "report", "a", "b", "report.2"]
    assert (set(story.states.values()), story.end) == ({"complete"}, ("complete", None))


async def test_last_step_that_failed_before_a_repair_does_not_count(begin: Begin) -> None:
    story = begin(STEPS, TOP)
    lab = story.orchestra.lab
    await story.run(["a", "report"])
    assert story.end == ("error", None)

    lab.one.advance(operator("reset", lab.steps(story.task)["a"], n={"actor": "ada"}))
    await story.run()

    assert story.states == {"a": "complete", "b": "complete", "report": "error:o", "report.2": "complete"}
    assert story.end == ("complete", None)


async def test_repair_of_a_last_step_runs_nothing_else(begin: Begin) -> None:
    story = begin(STEPS, TOP)
    lab = story.orchestra.lab
    await story.run(["report"])

    lab.one.advance(operator("reset", lab.steps(story.task)["report"], n={"actor": "ada"}))
    await story.run()

    assert story.ran == ["a", "b", "report", "report"]
    assert story.end == ("complete", None)


async def test_deadline_ends_the_other_steps_and_not_the_last_ones(begin: Begin) -> None:
    story = begin(STEPS, TOP, deadline_ms=3_600_000)
    lab = story.orchestra.lab
    (_,) = lab.one.take()
    lab.one.set_time(7200)
    lab.one.call("due", lab.one.args(limit=100))
    assert not lab.one.call("due", lab.one.args(limit=100)).get("promoted")

    await story.run()

    assert story.states == {"a": "error", "b": "pending", "report": "complete"}
    assert (story.end, story.dead_letters) == (("error", None), 1)


async def test_last_steps_run_although_the_task_waits_for_an_operator(begin: Begin) -> None:
    story = begin(STEPS, TOP)
    lab = story.orchestra.lab
    (claim,) = lab.one.take()
    lab.one.advance(fail(claim), on_blocked="wait")
    (report,) = lab.one.take()
    lab.one.advance(ok(report), on_blocked="wait")
    assert story.end == ("blocked_by_failures", None)

    lab.one.advance(operator("complete", lab.steps(story.task)["a"], n={"actor": "ada"}, r={}))
    await story.run()

    assert story.states["report.2"] == "complete"
    assert story.end == ("complete", None)


async def test_retry_of_a_task_leaves_its_last_steps_to_their_next_run(begin: Begin) -> None:
    story = begin(STEPS, TOP)
    lab = story.orchestra.lab
    await story.run(["a", "report"])

    retried = lab.one.call("retry", lab.one.args(task=story.task, n={"actor": "ada"}))
    assert retried["reset"] == ["a"]
    await story.run(["report.2"])
    assert story.end == ("error", None)

    assert lab.one.call("retry", lab.one.args(task=story.task, n={"actor": "ada"}))["reset"] == ["report.2"]
    await story.run()
    assert story.end == ("complete", None)


async def test_sweep_begins_the_last_steps_of_a_task_at_rest(begin: Begin) -> None:
    """A rest that no write of a step has seen: the counters were repaired."""
    story = begin("name: a\nname: report", TOP)
    lab = story.orchestra.lab
    (claim,) = lab.one.take()
    lab.observer.execute("update tasker.tasks set done = done - 1")
    await story.report(claim)
    assert "report" not in story.states

    lab.one.call("evaluate", lab.one.args(tasks=[story.task]))

    await story.run()
    assert story.end == ("complete", None)


async def test_deadline_that_passes_while_last_steps_run_leaves_them(begin: Begin) -> None:
    story = begin("name: a\nname: report", TOP, deadline_ms=3_600_000)
    lab = story.orchestra.lab
    (claim,) = lab.one.take()
    await story.report(claim)
    (report,) = lab.one.take()
    lab.one.set_time(7200)

    lab.one.call("due", lab.one.args(limit=100))
    assert story.states["report"] == "in_progress"
    await story.report(report)

    assert story.end == ("complete", None)


@pytest.mark.parametrize("on_limit", ["cancel_new", "cancel_running"])
async def test_last_steps_of_a_task_that_gives_way_run_to_their_end(begin: Begin, on_limit: str) -> None:
    story = begin("name: a\nname: report", TOP + f"\nconcurrency: {{limit: 1, on_limit: {on_limit}}}")
    lab = story.orchestra.lab

    def turn() -> None:
        for _ in range(3):
            lab.one.call("due", lab.one.args(limit=100))

    turn()
    tasks = [story.task, lab.submit_one(story.plan)]
    turn()
    tasks.append(lab.submit_one(story.plan))
    turn()

    gone = tasks[1] if on_limit == "cancel_new" else tasks[0]
    assert lab.task(gone).state != "cancelled"
    for _ in range(4):
        await story.run()
        turn()

    assert (lab.task(gone).state, lab.states(gone)) == ("cancelled", {"a": "cancelled", "report": "complete"})
