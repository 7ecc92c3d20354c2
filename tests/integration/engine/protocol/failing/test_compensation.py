"""Compensations: what is undone, in which order, and in which state the task ends."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tasker.engine.expansion.compensations import plan_compensation
from tests.integration.engine.protocol.failing.conftest import Begin, Run, Story
from tests.support.engine_fixture import Item, ok, operator

SAGA = """
  name: flight, compensate: u
  name: hotel, dependencies: [flight], compensate: u
  name: car, dependencies: [hotel], compensate: u
  name: pay, dependencies: [car]
"""
TOP = "on_failure: compensate"
LAST = TOP + "\nfinally: [report]"


def operate(story: Story, kind: str, step: str) -> str | None:
    row = story.orchestra.lab.steps(story.task)[step]
    more: dict[str, Any] = {"r": {}} if kind == "complete" else {}
    answer = story.orchestra.lab.one.advance(operator(kind, row, n={"actor": "ada"}, **more))
    return (answer.get("verdicts") or {}).get(str(row.workflow_step_uuid))


def cancel(story: Story, **more: Any) -> Item:
    lab = story.orchestra.lab
    return lab.one.call("cancel", lab.one.args(task=story.task, reason="enough", actor="ada", **more))


def reasons(story: Story) -> list[str]:
    query = "select dlq_reason::text from tasker.tasks_dlq where task_uuid = %s"
    return [row[0] for row in story.orchestra.lab.observer.rows(query, story.task)]


async def test_complete_steps_are_undone_in_reverse_order(run: Run) -> None:
    story = await run(SAGA, "pay", top=TOP)

    assert story.ran == ["flight", "hotel", "car", "pay", "car.undo", "hotel.undo", "flight.undo"]
    assert (story.end, reasons(story)) == (("error", "compensated"), [])


async def test_ends_of_compensations_are_counted(run: Run) -> None:
    counted = "select outcome, sum(number)::int from tasker.compensation_counters group by 1 order by 1"
    story = await run(SAGA, "pay", top=TOP)
    await run(SAGA, "pay", "car.undo", top=TOP)
    await run(SAGA, "flight", top=TOP)

    assert story.orchestra.lab.observer.rows(counted) == [("compensated", 2), ("compensation_failed", 1)]


async def test_step_that_failed_or_never_ran_is_not_undone(run: Run) -> None:
    story = await run(SAGA, "hotel", top=TOP)

    assert story.ran == ["flight", "hotel", "flight.undo"]
    assert story.end == ("error", "compensated")


async def test_task_without_a_complete_step_is_compensated_at_once(run: Run) -> None:
    story = await run(SAGA, "flight", top=TOP)
    assert (story.ran, story.end) == (["flight"], ("error", "compensated"))

    story = await run(SAGA + "  name: report\n", "flight", top=LAST)
    assert (story.ran, story.end) == (["flight", "report"], ("error", "compensated"))


async def test_task_that_succeeds_is_not_undone(run: Run) -> None:
    story = await run(SAGA, top=TOP)

    assert story.ran == ["flight", "hotel", "car", "pay"]
    assert story.end == ("complete", None)


async def test_only_a_step_with_the_word_starts_the_compensation(run: Run) -> None:
    steps = SAGA.replace("name: pay,", "name: pay, on_failure: compensate,") + "  name: other, dependencies: [flight]\n"

    assert (await run(steps, "other")).end == ("error", None)
    assert (await run(steps, "pay")).end == ("error", "compensated")


async def test_last_steps_run_after_the_compensation(run: Run) -> None:
    story = await run(SAGA + "  name: report\n", "pay", top=LAST)

    assert story.ran[-4:] == ["car.undo", "hotel.undo", "flight.undo", "report"]
    assert (story.end, reasons(story)) == (("error", "compensated"), [])


async def test_compensation_begins_when_the_task_is_at_rest(begin: Begin) -> None:
    story = begin("name: a, compensate: u\nname: b\nname: slow, compensate: u", TOP)
    claims = {claim["name"]: claim for claim in story.orchestra.lab.one.take()}
    await story.report(claims["a"])
    await story.report(claims["b"], ["b"])
    assert set(story.states) == {"a", "b", "slow"}

    await story.report(claims["slow"])
    await story.run()

    assert sorted(story.ran[-2:]) == ["a.undo", "slow.undo"]
    assert story.end == ("error", "compensated")


async def test_failed_compensation_leaves_what_waits_for_it_to_an_operator(begin: Begin) -> None:
    story = await begin(SAGA, TOP).run(["pay", "hotel.undo"])
    assert story.ran[-2:] == ["car.undo", "hotel.undo"]
    assert (story.end, reasons(story)) == (("error", "compensation_failed"), ["compensation_failed"])

    assert operate(story, "reset", "pay") == "undone"
    assert operate(story, "complete", "flight.undo") is None
    assert story.end == ("error", "compensation_failed")
    assert operate(story, "reset", "hotel.undo") is None
    assert story.end == ("steps_in_process", "compensating")
    await story.run()

    assert story.ran[-1] == "hotel.undo"
    assert story.end == ("error", "compensated")


async def test_resolved_compensation_lets_the_rest_go_on(begin: Begin) -> None:
    story = await begin(SAGA, TOP).run(["pay", "car.undo"])

    assert operate(story, "resolve", "car.undo") is None
    await story.run()

    assert story.ran[-2:] == ["hotel.undo", "flight.undo"]
    assert story.end == ("error", "compensated")


async def test_retry_of_a_task_whose_compensation_failed_repeats_that_alone(begin: Begin) -> None:
    story = await begin(SAGA, TOP).run(["pay", "hotel.undo"])
    lab = story.orchestra.lab

    assert lab.one.call("retry", lab.one.args(task=story.task, n={"actor": "ada"}))["reset"] == ["hotel.undo"]
    await story.run()

    assert story.ran[-2:] == ["hotel.undo", "flight.undo"]
    assert story.end == ("error", "compensated")


async def test_replay_of_dead_letters_repeats_what_failed_of_a_compensation(begin: Begin) -> None:
    replayable = "select name from tasker.replayable(%s, null)"
    story = await begin(SAGA, TOP).run(["pay", "hotel.undo"])
    assert story.orchestra.lab.observer.rows(replayable, story.task) == [("hotel.undo",)]

    story = await begin(SAGA, TOP).run(["pay"])
    assert story.orchestra.lab.observer.rows(replayable, story.task) == []


async def test_steps_without_a_compensation_keep_the_order(run: Run) -> None:
    steps = """
      name: a, compensate: u
      name: check, dependencies: [a]
      name: b, dependencies: [check], compensate: u
      name: c, dependencies: [check], compensate: u
      name: end, dependencies: [b, c]
    """
    story = await run(steps, "end", top=TOP)

    assert story.ran[-3:] == ["b.undo", "c.undo", "a.undo"]
    edges = "select count(*) from tasker.dynamic_edges where task_uuid = %s"
    assert story.orchestra.lab.observer.value(edges, story.task) == 5


async def test_cancel_with_compensation_undoes_and_ends_cancelled(begin: Begin) -> None:
    story = begin(SAGA + "  name: report\n", LAST)
    for _ in range(2):
        (claim,) = story.orchestra.lab.one.take()
        await story.report(claim)

    assert cancel(story, compensate=True)["state"] == "steps_in_process"
    story.orchestra.lab.check()
    await story.run()

    assert story.ran[-3:] == ["hotel.undo", "flight.undo", "report"]
    assert story.end == ("cancelled", "compensated")


async def test_second_cancel_with_compensation_does_not_end_it(begin: Begin) -> None:
    story = begin(SAGA, TOP)
    (claim,) = story.orchestra.lab.one.take()
    await story.report(claim)
    cancel(story, compensate=True)

    answer = cancel(story, compensate=True)

    assert (answer["cancelled"], answer["outcome"]) == (False, "compensating")
    await story.run()
    assert story.end == ("cancelled", "compensated")


@pytest.mark.parametrize("first", ["cancel", "success"])
async def test_cancel_with_compensation_while_last_steps_run_undoes_the_others(begin: Begin, first: str) -> None:
    story = begin("name: flight, compensate: u\nname: pay, dependencies: [flight]\nname: report", LAST)
    (claim,) = story.orchestra.lab.one.take()
    await story.report(claim)
    if first == "cancel":
        cancel(story)
    else:
        (claim,) = story.orchestra.lab.one.take()
        await story.report(claim)
    assert story.states["report"] == "enqueued"

    cancel(story, compensate=True)
    story.orchestra.lab.check()
    await story.run()

    assert story.ran[-2:] == ["flight.undo", "report.2"]
    assert story.end == ("cancelled", "compensated")


async def test_cancel_alone_undoes_nothing(begin: Begin) -> None:
    story = begin(SAGA, TOP)
    (claim,) = story.orchestra.lab.one.take()
    await story.report(claim)

    cancel(story)

    assert story.end == ("cancelled", None)


async def test_cancel_of_a_compensation_ends_it(begin: Begin) -> None:
    story = begin(SAGA + "  name: report\n", LAST)
    (claim,) = story.orchestra.lab.one.take()
    await story.report(claim)
    cancel(story, compensate=True)

    cancel(story)
    await story.run()

    assert story.ran == ["flight", "report"]
    assert story.states["flight.undo"] == "cancelled"
    assert story.end == ("cancelled", "compensation_failed")


async def test_cancelled_task_whose_compensation_failed_ends_cancelled_once_it_is_repaired(begin: Begin) -> None:
    story = begin(SAGA, TOP)
    (claim,) = story.orchestra.lab.one.take()
    await story.report(claim)
    cancel(story, compensate=True)
    await story.run(["flight.undo"])
    assert (story.end, reasons(story)) == (("error", "compensation_failed"), ["compensation_failed"])

    assert operate(story, "reset", "flight.undo") is None
    await story.run()

    assert story.end == ("cancelled", "compensated")


async def test_cancelled_task_ends_cancelled_once_an_operator_did_what_was_left_to_undo(begin: Begin) -> None:
    story = begin(SAGA, TOP)
    (claim,) = story.orchestra.lab.one.take()
    await story.report(claim)
    cancel(story, compensate=True)
    await story.run(["flight.undo"])

    assert operate(story, "resolve", "flight.undo") is None

    assert story.end == ("cancelled", "compensated")
    story.orchestra.lab.check()


async def test_step_whose_result_waits_for_an_orchestrator_is_undone_after_a_cancel(begin: Begin) -> None:
    story = begin(SAGA, TOP)
    lab = story.orchestra.lab
    (claim,) = lab.one.take()
    lab.one.call("park", lab.one.args(items=[ok(claim, {"booking": 7})]))

    cancel(story, compensate=True)

    assert story.states["flight"] == "complete"
    lab.check()
    await story.run()
    assert (story.ran, story.end) == (["flight.undo"], ("cancelled", "compensated"))


async def test_deadline_starts_the_compensation_and_does_not_end_it(begin: Begin) -> None:
    story = begin(SAGA, TOP, deadline_ms=3_600_000)
    lab = story.orchestra.lab
    (claim,) = lab.one.take()
    await story.report(claim)
    lab.one.set_time(7200)
    lab.one.call("due", lab.one.args(limit=100))
    assert story.states["flight.undo"] == "enqueued"
    lab.one.call("due", lab.one.args(limit=100))

    await story.run()

    assert story.end == ("error", "compensated")


async def test_lost_step_that_may_run_only_once_leaves_the_decision_to_an_operator(begin: Begin) -> None:
    story = begin(SAGA.replace("name: hotel,", "name: hotel, on_worker_lost: fail,"), TOP)
    lab = story.orchestra.lab
    (claim,) = lab.one.take()
    await story.report(claim)
    lab.one.take()
    lab.one.set_time(3600)
    assert (await story.orchestra.sweep())["lost_worker"] == 1
    assert (story.end, story.dead_letters) == (("error", None), 1)


async def test_plan_of_the_database_is_that_of_the_planner(begin: Begin) -> None:
    for seed in range(20):
        random = Random(seed)
        graph: dict[str, list[str]] = {}
        for number in range(random.randint(3, 9)):
            graph[f"s{number}"] = sorted(random.sample([*graph], min(len(graph), random.choice((0, 1, 1, 2, 3)))))
        lines = [
            f"name: {name}, dependencies: [{', '.join(above)}]" + ", compensate: u" * (random.random() < 0.6)
            for name, above in graph.items()
        ]
        failing = {name for name in graph if random.random() < 0.25} or {"s2"}
        story = await begin("\n".join([*lines, "name: other, compensate: u"]), TOP).run(failing)

        complete = [name for name, state in story.states.items() if state == "complete" and "undo" not in name]
        planned = {step.name: sorted(step.parents) for step in plan_compensation(story.plan, complete, graph)}
        rows = story.orchestra.lab.observer.rows(
            """select t.name, array_agg(f.name order by f.name) from tasker.dynamic_edges e
            join tasker.workflow_steps f on f.workflow_step_uuid = e.from_step_uuid
            join tasker.workflow_steps t on t.workflow_step_uuid = e.to_step_uuid
            where e.task_uuid = %s group by 1""",
            story.task,
        )
        assert dict(rows) == planned, (seed, graph, failing)
        assert story.end == ("error", "compensated")


async def test_plan_through_gates_is_that_of_the_planner(begin: Begin) -> None:
    planned_by_sql = """select x->>'name', array(select jsonb_array_elements_text(x->'parents'))
        from jsonb_array_elements(tasker.compensations_of(%s, %s)) x"""
    for seed in range(4):
        random = Random(seed)
        graph: dict[str, list[str]] = {f"s0{n}": [] for n in range(3)}
        for layer in range(1, 4):  # that meet in all steps of the layer above, or in one
            above = [name for name in graph if name.startswith(f"s{layer - 1}")]
            for n in range(3):
                graph[f"s{layer}{n}"] = above if random.random() < 0.7 else [random.choice(above)]
        lines = [
            f"name: {name}, dependencies: [{', '.join(above)}]" + ", compensate: u" * (random.random() < 0.7)
            for name, above in graph.items()
        ]
        story = await begin("\n".join([*lines, f"name: end, dependencies: [{', '.join(graph)}]"])).run(["end"])

        for most in (1, 3, 7):
            planned = plan_compensation(story.plan, graph, {**graph, "end": [*graph]}, most)
            rows = story.orchestra.lab.observer.rows(planned_by_sql, story.task, most)
            assert [(name, sorted(above)) for name, above in rows] == [
                (new.name, sorted(new.parents)) for new in planned
            ], (seed, most)


async def test_many_compensations_that_meet_have_few_edges(begin: Begin) -> None:
    lines = [f"name: a{n}, compensate: u" for n in range(8)]
    lines += [f"name: meet, dependencies: [{', '.join(f'a{n}' for n in range(8))}]"]
    lines += [f"name: b{n}, dependencies: [meet], compensate: u" for n in range(9)]
    edges = """select sum(jsonb_array_length(x->'parents') - 1)
        from jsonb_array_elements(tasker.compensations_of(%s, %s)) x"""
    story = await begin("\n".join([*lines, "name: end, dependencies: [b0]"])).run(["end"])

    counted = [story.orchestra.lab.observer.value(edges, story.task, most) for most in (71, 72)]

    assert counted == [8 + 8, 8 * 9]
