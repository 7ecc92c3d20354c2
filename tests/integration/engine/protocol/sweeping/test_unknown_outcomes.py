"""A lost worker of a step with `effect: once`: the step is not repeated, and the failure says what is known."""

from __future__ import annotations

from dataclasses import replace

from tests.integration.engine.protocol.conftest import Orchestra


async def test_lost_worker_of_a_step_that_runs_once_leaves_what_is_known_to_an_operator(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    plan = lab.chain(1)
    plan = replace(plan, steps=(replace(plan.steps[0], on_worker_lost="fail", effect="once"),))
    task, claims = lab.running(plan)
    claim, began = claims["s0"], lab.steps(task)["s0"].started_at
    report = {"step": claim["step"], "task": task, "token": claim["token"], "done": 3, "total": 4}
    lab.one.core("report", {"worker": lab.one.worker, "lines": [], "progress": [report]})

    assert await orchestra.sweep() == {"lost_worker": 1}

    assert (lab.states(task)["s0"], lab.task(task).state) == ("error", "error")
    error = lab.observer.value("select error from tasker.step_failures where task_uuid = %s", task)
    known = error["metadata"]
    assert (error["error_type"], error["retryable"], known["cause"]) == ("outcome_unknown", False, "worker_lost")
    assert known["worker"] == lab.one.worker
    assert known["claimed_at"].startswith(began.isoformat()[:19])
    assert (known["progress"]["done"], known["progress"]["total"]) == (3, 4)
    assert "whether the step had its effect is unknown (effect: once)" in error["message"]
    answer = lab.one.core("retry", {**lab.one.args(), "task": task, "n": {}})
    assert (answer["reset"], answer["left"]) == ([], ["s0"])
