"""Rule 1: whoever locks several rows locks them in one order, and judges a step only once its row is locked."""

from __future__ import annotations

from tests.support.engine_fixture import Lab, ok, operator, verdict
from tests.support.lock_order import locks_in_order
from tests.support.random_plans import Spec


def nine_roots(lab: Lab) -> str:
    return lab.submit_one(lab.plan(*(Spec(f"s{n}") for n in range(9))))


def test_results_of_many_tasks_lock_the_tasks_in_order(lab: Lab) -> None:
    tasks = lab.submit(lab.chain(1), *({} for _ in range(9)))
    items = [ok(claim) for claim in reversed(lab.one.claim())]

    answer = locks_in_order(lab, "tasker.tasks", tasks, lab.one, lambda: lab.one.advance(*items))

    assert len(answer["finished"]) == 9


def test_results_of_many_steps_lock_the_steps_in_order(lab: Lab) -> None:
    nine_roots(lab)
    claims = lab.one.claim()
    steps = [claim["step"] for claim in claims]

    answer = locks_in_order(lab, "tasker.workflow_steps", steps, lab.one, lambda: lab.one.finish(*reversed(claims)))

    assert not answer.get("verdicts")


def test_parking_many_results_locks_the_steps_in_order(lab: Lab) -> None:
    nine_roots(lab)
    claims = lab.one.claim()
    items = [ok(claim) for claim in reversed(claims)]

    answer = locks_in_order(
        lab, "tasker.workflow_steps", [claim["step"] for claim in claims], lab.one,
        lambda: lab.one.core("park", {"worker": lab.one.worker, "items": items}),
    )  # fmt: skip

    assert len(answer["parked"]) == 9


def test_a_claim_locks_the_steps_in_order(lab: Lab) -> None:
    steps = [str(row.workflow_step_uuid) for row in lab.steps(nine_roots(lab)).values()]

    answer = locks_in_order(
        lab, "tasker.workflow_steps", steps, lab.one,
        lambda: lab.one.core("claim", lab.one.args(steps=steps[::-1])),
    )  # fmt: skip

    assert len(answer["claims"]) == 9


def test_an_operator_s_action_beside_a_claim_is_judged_by_what_the_claim_wrote(lab: Lab) -> None:
    """A claim takes no task lock: the step's own row is what both must have."""
    task = lab.submit_one(lab.chain(1))
    row = lab.steps(task)["s0"]

    with lab.transaction(lab.one):
        (claim,) = lab.one.claim()
        resolved = lab.later(lab.two.advance, operator("resolve", row))
        lab.waits(resolved, lab.two, on=lab.one)

    assert resolved.result(timeout=30)["finished"] == {task: "complete"}
    assert lab.step_paths(task, "s0") == ["pending>enqueued", "enqueued>in_progress", "in_progress>resolved_manually"]
    assert lab.steps(task)["s0"].claim_token == claim["token"] + 1
    assert verdict(lab.one.finish(claim), claim) == "stale"


def test_a_batch_of_submissions_is_inserted_in_the_order_of_the_identities(lab: Lab) -> None:
    """Else two batches of the same identities, in opposite order, wait for each other."""
    plan = lab.chain(1)
    lab.submit(plan)
    names = [f"{lab.namespace} {letter}" for letter in "abcdefghi"]
    blocker, probe = lab.session(), lab.session()

    with lab.transaction(blocker):
        blocker.submit(plan, {"identity": names[4]})
        batch = lab.later(lab.one.submit, plan, *({"identity": name} for name in reversed(names)))
        lab.waits(batch, lab.one, on=blocker)
        with probe.connection.transaction(force_rollback=True):
            assert len(probe.submit(plan, {"identity": names[8]})["created"]) == 1, "not inserted yet"
        twin = lab.later(probe.submit, plan, {"identity": names[0]})
        lab.waits(twin, probe, on=lab.one)

    assert len(batch.result(timeout=30)["created"]) == 8
    assert twin.result(timeout=30)["created"] == []
