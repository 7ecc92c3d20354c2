"""A failure with its plan beside another change of the same task: both are right, or the failure is planned again."""

from __future__ import annotations

from tasker.engine.changes import StepChange
from tasker.engine.failure_writes import with_plan
from tasker.engine.plans import PlanStore
from tasker.orchestration.changes import simple_change
from tests.integration.engine.protocol.failing.conftest import Begin, Story
from tests.support.engine_fixture import FAILURE, Item, fail, ok, operator, verdict

JOINED = """
  name: a, on_failure: skip_cascade
  name: b, on_failure: skip_cascade
  name: join, type: deferred_convergence, dependencies: [a, b]
  name: end, dependencies: [join]
"""


def claims_of(story: Story) -> dict[str, Item]:
    return {claim["name"]: claim for claim in story.orchestra.lab.one.take()}


async def planned(story: Story, claim: Item) -> list[StepChange]:
    """The failure of this claim with its plan, as of now."""
    engine = story.orchestra.engine
    change: StepChange = {**simple_change("fail", claim["step"], claim["task"], claim["token"], claim["worker"])}
    change["e"] = FAILURE
    return await with_plan(engine, PlanStore(engine.connection), change)


def write(story: Story, changes: list[StepChange]) -> Item:
    return story.orchestra.lab.two.advance(*(dict(change) for change in changes), atomic=True)


async def test_failure_without_a_plan_is_refused_and_changes_nothing(begin: Begin) -> None:
    story = begin(JOINED)
    claims = claims_of(story)

    answer = story.orchestra.lab.one.advance(fail(claims["a"]))

    assert verdict(answer, claims["a"]) == "replan"
    assert story.states == {"a": "in_progress", "b": "in_progress", "join": "pending", "end": "pending"}


async def test_second_of_two_failures_at_once_is_planned_again(begin: Begin) -> None:
    story = begin(JOINED)
    claims = claims_of(story)
    first, second = await planned(story, claims["a"]), await planned(story, claims["b"])
    assert [change["kind"] for change in (*first, *second)] == ["fail", "fail"], "each leaves the join to the other"

    assert not write(story, first).get("verdicts")
    assert verdict(write(story, second), claims["b"]) == "replan"
    assert story.states["join"] == "pending"

    write(story, await planned(story, claims["b"]))
    assert story.states == {"a": "error:k", "b": "error:k", "join": "cancelled:s", "end": "cancelled:s"}
    assert story.end == ("complete", "partial")


async def test_result_between_a_plan_and_its_write_starts_the_convergence_once(begin: Begin) -> None:
    story = begin(JOINED)
    claims = claims_of(story)
    plan = await planned(story, claims["a"])

    story.orchestra.lab.one.advance(ok(claims["b"]))
    write(story, plan)

    await story.run()
    assert story.ran == ["join", "end"]


async def test_cancel_before_the_write_of_a_plan_wins(begin: Begin) -> None:
    story = begin("name: a, on_failure: skip_cascade\nname: b, dependencies: [a]")
    (claim,) = claims_of(story).values()
    plan = await planned(story, claim)
    story.orchestra.lab.one.call("cancel", {"task": story.task, "reason": "enough", "actor": "ada"})

    assert verdict(write(story, plan), claim) == "cancelled"
    assert story.states == {"a": "cancelled", "b": "cancelled"}
    assert story.end == ("cancelled", None)


async def test_cancel_after_a_failure_leaves_it_as_it_is(begin: Begin) -> None:
    story = begin(JOINED)
    await story.report(claims_of(story)["a"], ["a"])

    story.orchestra.lab.one.call("cancel", {"task": story.task, "reason": "enough", "actor": "ada"})

    assert story.states == {"a": "error:k", "b": "cancelled", "join": "cancelled", "end": "cancelled"}


async def test_dependent_that_a_person_ended_meanwhile_is_not_skipped(begin: Begin) -> None:
    story = begin("name: a, on_failure: skip_cascade\nname: b, dependencies: [a]\nname: c, dependencies: [b]")
    lab = story.orchestra.lab
    (claim,) = claims_of(story).values()
    plan = await planned(story, claim)
    lab.one.advance(operator("resolve", lab.steps(story.task)["b"], n={"actor": "ada"}))

    assert verdict(write(story, plan), claim) == "replan", "a plan is valid as a whole"
    assert story.states["a"] == "in_progress"

    await story.report(claim, ["a"])
    await story.run()
    assert story.states == {"a": "error:k", "b": "resolved_manually", "c": "complete"}


async def test_operators_cannot_change_a_step_without_which_the_task_went_on(begin: Begin) -> None:
    story = begin("name: a, on_failure: continue\nname: b, dependencies: [a]\nname: z, on_failure: fail_task")
    lab = story.orchestra.lab
    await story.run(["a", "z"])

    for kind in ("reset", "resolve", "complete"):
        row = lab.steps(story.task)["a"]
        answer = lab.one.advance(operator(kind, row, n={"actor": "ada"}, r={}))
        assert (answer["verdicts"] or {})[str(row.workflow_step_uuid)] == "settled"
    retried = lab.one.call("retry", lab.one.args(task=story.task, n={"actor": "ada"}))
    assert retried["reset"] == ["z"]
    await story.run()
    assert story.end == ("complete", "partial")


async def test_failure_reported_twice_counts_once(begin: Begin) -> None:
    story = begin("name: a, on_failure: {run: undo}\nname: undo")
    (claim,) = claims_of(story).values()
    await story.report(claim, ["a"])

    answer = await story.report(claim, ["a"])

    assert answer.verdicts == {claim["step"]: "already_accepted"}
    assert story.states == {"a": "error:h", "undo": "enqueued"}


async def test_lost_worker_fails_by_the_word_of_its_step(begin: Begin) -> None:
    story = begin("name: a, on_worker_lost: fail, on_failure: continue\nname: b, dependencies: [a]")
    lab = story.orchestra.lab
    claims_of(story)
    lab.one.set_time(3600)

    assert (await story.orchestra.sweep())["lost_worker"] == 1

    await story.run()
    assert story.states == {"a": "error:c", "b": "complete"}


async def test_step_that_cannot_begin_fails_by_its_word(begin: Begin) -> None:
    story = begin("name: a, not_before: input.at, on_failure: continue\nname: b, dependencies: [a]")
    lab = story.orchestra.lab

    answer = lab.one.call("due", lab.one.args())
    (change,) = answer["unplanned"]
    assert story.states == {"a": "pending", "b": "pending"}
    await story.orchestra.sweeper.apply([change], story.orchestra.caller())

    await story.run()
    assert story.states == {"a": "error:c", "b": "complete"}


async def test_deadline_ends_the_task_whatever_its_steps_say(begin: Begin) -> None:
    story = begin("name: a, on_failure: continue\nname: b, dependencies: [a]", deadline_ms=3_600_000)
    lab = story.orchestra.lab
    claims_of(story)
    lab.one.set_time(7200)

    lab.one.call("due", lab.one.args())

    assert (story.states["a"], story.end) == ("error", ("error", None))


async def test_parked_failure_is_planned_by_the_orchestrator(begin: Begin) -> None:
    story = begin("name: a, on_failure: skip_cascade\nname: b, dependencies: [a]")
    lab = story.orchestra.lab
    (claim,) = claims_of(story).values()
    lab.one.call("park", {"worker": claim["worker"], "items": [{**fail(claim), "w": claim["worker"]}]})
    assert story.states["a"] == "enqueued_as_error_for_orchestration"

    await story.orchestra.sweep()

    assert story.states == {"a": "error:k", "b": "cancelled:s"}
    assert story.end == ("complete", "partial")
