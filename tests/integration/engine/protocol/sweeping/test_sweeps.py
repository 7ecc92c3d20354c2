"""Rule 13: sweeps find what was forgotten, repair exactly that, count it, and find nothing in a healthy run."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from tasker.engine.plans import PlanStore
from tasker.orchestration.sweep import Sweeper
from tests.integration.engine.protocol.conftest import Orchestra, at_once
from tests.support.engine_fixture import Lab, change, fail, ok, retry
from tests.support.random_plans import RetryPolicy, Spec


async def test_a_healthy_run_gives_a_sweep_nothing_to_repair(orchestra: Orchestra) -> None:
    """Swept at every moment: queued, claimed, failed and waiting, held, half done, blocked, complete."""
    lab = orchestra.lab
    lab.one.start_worker()
    lab.window = 3
    plan = lab.plan(Spec("a"), Spec("b"), Spec("c", depends_on=("a", "b")), Spec("d", depends_on=("c",)))
    tasks = lab.submit(plan, *({} for _ in range(3)))
    failed = False
    for _ in range(30):
        assert not await orchestra.sweep()
        answer = lab.one.claim_answer(2)
        assert not await orchestra.sweep()
        for claim in answer.get("claims") or ():
            item = ok(claim) if failed else retry(claim, delay_ms=0)
            failed = True
            lab.one.advance(item)
            assert not await orchestra.sweep()
        lab.one.call("due", lab.one.args())
        if answer.get("release"):
            lab.one.call("backlog", lab.one.args())

    assert {lab.task(task).state for task in tasks} == {"complete"}
    assert not lab.observer.rows("select from tasker.repairs")


async def test_a_task_that_waits_for_a_person_is_no_case_for_a_sweep(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    task, claims = lab.running(lab.chain())
    lab.one.advance(fail(claims["s0"]), on_blocked="wait")

    assert not await orchestra.sweep()
    assert lab.task(task).state == "blocked_by_failures"


async def test_a_lost_hint_is_sent_again_once(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    lab.submit(lab.chain(1), {}, {})
    lab.lose_hints()

    assert await orchestra.sweep() == {"hint_lost": 2}
    assert not await orchestra.sweep()

    assert lab.one.run_all() == 2
    assert lab.observer.value("select repaired from tasker.repairs where kind = 'hint_lost'") == 2


async def test_a_hint_that_an_open_claim_has_taken_is_not_lost(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    lab.submit_one(lab.chain(1))

    with lab.transaction(lab.one):
        (claim,) = lab.one.claim()
        assert not await orchestra.sweep()
    lab.one.start_worker()

    assert not await orchestra.sweep()
    lab.one.finish(claim)


async def test_a_step_that_is_claimed_and_released_while_a_sweep_looks_for_its_hint_is_not_hinted_again(
    orchestra: Orchestra, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = orchestra.lab
    lab.submit_one(lab.chain(1))
    look = orchestra.engine.missing_hints

    async def look_at_the_wrong_moment(namespace: str, steps: Sequence[str]) -> list[str]:
        (claim,) = lab.one.claim()
        missing = await look(namespace, steps)
        assert missing == [claim["step"]]
        lab.one.advance(change("release", claim))
        return missing

    monkeypatch.setattr(orchestra.engine, "missing_hints", look_at_the_wrong_moment)

    assert not await orchestra.sweep()
    assert lab.queue_depth() == 1


async def test_hints_are_looked_for_with_growing_gaps(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    lab.submit_one(lab.chain(1))
    find = {"hint_grace_ms": 1000, "limit": 10}

    def overdue(seconds: float) -> bool:
        lab.one.set_time(seconds)
        return bool(lab.one.core("sweep", find).get("unhinted"))

    assert [overdue(0.5), overdue(30)] == [False, True]
    for sent in (1, 2, 3):
        lab.one.set_time(0)
        (row,) = lab.one.rows("select workflow_step_uuid as step from tasker.workflow_steps")
        lab.one.call("wakeups_sent", {"steps": [str(row.step)]})
        assert [overdue(2**sent - 0.5), overdue(2**sent + 30)] == [False, True]


async def test_a_step_of_a_worker_that_is_gone_is_tried_again(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    lab.one.start_worker()
    task, claims = lab.running(lab.chain(1))
    assert not await orchestra.sweep(), "its lease is alive"
    lab.two.core("worker", {"action": "stop", "worker": lab.one.worker, "lease_ms": 0})

    assert await orchestra.sweep() == {"lost_worker": 1}
    assert not await orchestra.sweep()

    step = lab.steps(task)["s0"]
    assert (step.state, step.attempts, step.claim_token) == ("waiting_for_retry", 1, claims["s0"]["token"] + 1)
    assert lab.step_paths(task, "s0")[-1] == "in_progress>enqueued_as_error_for_orchestration>waiting_for_retry"
    error = lab.observer.value("select error from tasker.step_failures where task_uuid = %s", task)
    assert (error["error_type"], error["metadata"]["worker"]) == ("worker_lost", lab.one.worker)


async def test_a_step_past_its_deadline_is_taken_from_a_living_worker(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    lab.one.start_worker(lease_ms=10_000_000)
    task, claims = lab.running(lab.chain(1))
    lab.one.execute("update tasker.workflow_steps set deadline_at = pg_catalog.now() - interval '1 ms'")

    assert await orchestra.sweep() == {"lost_worker": 1}

    error = lab.observer.value("select error from tasker.step_failures where task_uuid = %s", task)
    assert "did not finish before its deadline" in error["message"]
    beat = {
        "action": "beat",
        "worker": lab.one.worker,
        "lease_ms": 1,
        "held": [[claims["s0"]["step"], claims["s0"]["token"]]],
    }
    assert lab.one.core("worker", beat)["lost"] == [claims["s0"]["step"]]


async def test_a_step_that_may_run_only_once_ends_in_error_when_its_worker_is_lost_and_says_why(
    orchestra: Orchestra,
) -> None:
    lab = orchestra.lab
    plan = lab.chain(2)
    plan = replace(plan, steps=(replace(plan.steps[0], on_worker_lost="fail"), plan.steps[1]))
    task, _ = lab.running(plan)

    assert await orchestra.sweep() == {"lost_worker": 1}

    assert (lab.states(task)["s0"], lab.task(task).state) == ("error", "error")
    error = lab.observer.value("select error from tasker.step_failures where task_uuid = %s", task)
    assert "may run only once" in error["message"]
    found = lab.observer.value("select fingerprints from tasker.tasks_dlq where task_uuid = %s", task)
    assert found == [error["fingerprint"]]


async def test_a_lost_worker_uses_an_attempt_and_the_last_one_is_final(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    plan = lab.plan(Spec("s", retry=RetryPolicy(max_attempts=2, backoff_base_ms=0)))
    task, _ = lab.running(plan)
    await orchestra.sweep()
    lab.one.call("due", lab.one.args())
    (second,) = lab.one.claim()
    assert second["attempt"] == 2

    await orchestra.sweep()

    assert (lab.states(task), lab.task(task).state) == ({"s": "error"}, "error")


async def test_a_result_that_beats_the_sweep_to_the_lock_wins(orchestra: Orchestra) -> None:
    """The sweep read the step as lost; it must judge again under the lock."""
    lab = orchestra.lab
    task, claims = lab.running(lab.chain(1))
    found = lab.two.core("sweep", {"limit": 10})["orphans"]
    lab.one.finish(claims["s0"])

    lost = {
        "s": found[0]["s"],
        "t": found[0]["t"],
        "k": found[0]["k"],
        "kind": "fail",
        "n": {"lost": True},
        "e": {"m": 1},
    }
    lab.two.advance(lost)

    assert (lab.states(task), lab.task(task).state) == ({"s0": "complete"}, "complete")


async def test_a_sweep_skips_tasks_that_somebody_is_changing(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    task, _ = lab.running(lab.chain(1))

    with lab.transaction(lab.one):
        lab.one.execute("select from tasker.tasks where task_uuid = %s for update", task)
        assert not await orchestra.sweep()
    assert await orchestra.sweep() == {"lost_worker": 1}


async def test_a_parked_result_whose_message_was_lost_is_settled(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    task, claims = lab.running(lab.chain())
    lab.one.core("park", {"worker": lab.one.worker, "items": [ok(claims["s0"])]})

    assert await orchestra.sweep() == {"result_message_lost": 1}

    assert lab.states(task) == {"s0": "complete", "s1": "enqueued"}


async def test_a_ready_step_that_nobody_enqueued_is_enqueued(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    lab.window = 0
    task = lab.submit_one(lab.chain(1))
    lab.window = 10
    lab.one.execute("delete from tasker.ready_backlog")
    lab.one.execute("update tasker.tasks set held = 0")

    assert await orchestra.sweep() == {"not_enqueued": 1}
    assert not await orchestra.sweep()

    lab.one.run_all()
    assert lab.task(task).state == "complete"


async def test_a_held_step_is_no_case_for_a_sweep(orchestra: Orchestra) -> None:
    orchestra.lab.window = 0
    orchestra.lab.submit_one(orchestra.lab.chain(1))

    assert not await orchestra.sweep()


async def test_a_step_that_lost_its_timer_is_promoted(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    task, claims = lab.running(lab.chain(1))
    lab.one.advance(retry(claims["s0"], delay_ms=1_000_000))
    assert not await orchestra.sweep(), "it is not due"
    lab.one.execute("delete from tasker.timers")

    assert await orchestra.sweep() == {"not_promoted": 1}

    assert lab.states(task) == {"s0": "enqueued"}


@pytest.mark.parametrize(
    "state", ["steps_in_process", "evaluating_results", "enqueuing_steps", "initializing", "pending"]
)
async def test_a_task_whose_steps_are_all_done_is_finished(orchestra: Orchestra, state: str) -> None:
    lab = orchestra.lab
    task, claims = lab.running(lab.chain(1))
    lab.one.finish(claims["s0"])
    lab.one.execute("update tasker.tasks set state = %s, complete = false, completed_at = null", state)

    assert await orchestra.sweep() == {"not_finished": 1}
    assert not await orchestra.sweep()

    row = lab.task(task)
    assert (row.state, row.complete, row.completed_at is not None) == ("complete", True, True)


@pytest.mark.parametrize("state", ["initializing", "enqueuing_steps", "evaluating_results"])
async def test_a_task_left_in_a_passing_state_goes_on_and_is_counted(orchestra: Orchestra, state: str) -> None:
    lab = orchestra.lab
    task = lab.submit_one(lab.chain(1))
    lab.one.execute("update tasker.tasks set state = %s", state)

    assert await orchestra.sweep() == {"not_finished": 1}
    assert not await orchestra.sweep()

    assert lab.task(task).state == "waiting_for_dependencies"
    lab.one.run_all()
    assert lab.task(task).state == "complete"


async def test_counters_that_went_wrong_are_counted_again(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    task, claims = lab.running(lab.plan(Spec("a"), Spec("b")))
    lab.one.finish(claims["a"])
    lab.one.advance(fail(claims["b"]), on_blocked="wait")
    lab.one.execute("update tasker.tasks set state = 'evaluating_results', done = 2, failed = 0")

    assert await orchestra.sweep() == {"not_finished": 1}

    row = lab.task(task)
    assert (row.done, row.failed, row.state) == (1, 1, "error")


async def test_two_sweeps_at_once_repair_a_task_once(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    task, claims = lab.running(lab.chain(1))
    lab.one.finish(claims["s0"])
    lab.one.execute("update tasker.tasks set state = 'steps_in_process', complete = false")

    with lab.transaction(lab.one):
        assert lab.one.core("evaluate", {"tasks": [task]})["finished"] == {task: "complete"}
        assert not await orchestra.sweep(), "it takes what it can lock"
    assert not await orchestra.sweep()


async def test_a_sweep_reads_all_open_tasks_slice_by_slice(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    lab.submit(lab.chain(1), *({} for _ in range(25)))
    lab.lose_hints()
    plans, chance = PlanStore(orchestra.engine.connection), random.Random(1)
    small = Sweeper(orchestra.engine, orchestra.processor, plans, chance, at_once(slice=7))

    repairs = await small.sweep(orchestra.caller())

    assert repairs["hint_lost"] == 25


def test_the_invariants_query_names_what_is_broken(lab: Lab) -> None:
    """A check that cannot fail proves nothing: each table is bent once, and bent back."""
    task, _ = lab.running(lab.chain(2))
    for bend, mend, rule in (
        ("update tasker.tasks set active = 5", "update tasker.tasks set active = 1", "counters differ from the rows"),
        ("update tasker.tasks set complete = true", "update tasker.tasks set complete = false", "flag complete"),
        (
            "update tasker.workflow_steps set sort_key = sort_key + 1",
            "update tasker.workflow_steps set sort_key = sort_key - 1",
            "history does not end",
        ),
        (
            "update tasker.workflow_steps set unmet = unmet + 1",
            "update tasker.workflow_steps set unmet = unmet - 1",
            "unmet differs",
        ),
        (
            "update tasker.workflow_steps set state = 'enqueued_as_error_for_orchestration' where unmet > 0",
            "update tasker.workflow_steps set state = 'pending' where unmet > 0",
            "started before its parents",
        ),
        (
            "update tasker.step_moves set path = replace(path, 'EI', 'WI')",
            "update tasker.step_moves set path = replace(path, 'WI', 'EI')",
            "illegal transition of the step",
        ),
        (
            "update tasker.task_moves set path = replace(path, 'PN', 'PV')",
            "update tasker.task_moves set path = replace(path, 'PV', 'PN')",
            "illegal transition of the task",
        ),
    ):
        lab.one.execute(bend)
        found = {row.rule for row in lab.one.rows("select rule from tasker.violations_v1('{}')")}
        assert any(name.startswith(rule) for name in found), (bend, found)
        lab.one.execute(mend)
    assert not lab.one.rows(
        "select from tasker.violations_v1(jsonb_build_object('tasks', jsonb_build_array(%s::text)))", task
    )


async def test_a_step_that_nobody_can_resolve_fails_only_after_its_time(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    lab.one.start_worker()
    task, claims = lab.running(lab.chain(1))
    lab.one.advance(change("release", claims["s0"], n={"unserved": "missing.handler"}))
    assert not await orchestra.sweep()

    impatient = at_once(unserved_timeout_seconds=0.001)
    plans, chance = PlanStore(orchestra.engine.connection), random.Random(1)
    repairs = await Sweeper(orchestra.engine, orchestra.processor, plans, chance, impatient).sweep(orchestra.caller())

    assert +repairs == {"nobody_serves": 1}
    assert (lab.states(task), lab.task(task).state) == ({"s0": "error"}, "error")
    error = lab.observer.value("select error from tasker.step_failures where task_uuid = %s", task)
    assert "has the handler 'missing.handler'" in error["message"]


def test_a_repair_is_counted_in_its_own_write_and_only_when_it_is_accepted(lab: Lab) -> None:
    """Whoever repairs may be killed in between: then there is neither."""
    _, claims = lab.running(lab.chain())
    lab.one.advance(change("release", claims["s0"], k=claims["s0"]["token"] + 1), repairs="lost_worker")
    assert not lab.observer.rows("select from tasker.repairs")

    lab.one.advance(change("release", claims["s0"]), repairs="lost_worker")
    assert lab.observer.rows("select kind, repaired from tasker.repairs") == [("lost_worker", 1)]
