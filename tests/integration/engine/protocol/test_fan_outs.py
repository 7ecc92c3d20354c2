"""Child tasks: started in slices, counted once, and ended with their parent, whoever dies or comes at one moment."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.children import FanOut, end_all
from tests.support.engine_fixture import Lab, fail, ok, operator


def due(lab: Lab) -> Any:
    return lab.one.call("due", lab.one.args(limit=100, turn_ms=4000, late_ms=0))


def ends(lab: Lab) -> int:
    return int(lab.observer.value("select count(*) from tasker.child_ends"))


def test_children_start_in_slices_and_end_their_step_in_the_order_of_the_list(lab: Lab) -> None:
    fan_out = FanOut(lab, 5, max_parallel=2)

    for counters in ((2, 2, 0, 0), (4, 2, 2, 0), (5, 1, 4, 0)):
        fan_out.start()
        assert fan_out.counters == counters
        end_all(lab.one)
        fan_out.gather()

    assert fan_out.counters == (5, 0, 5, 0)
    assert lab.states(fan_out.task) == {"a": "complete", "b": "enqueued"}
    assert fan_out.result() == {
        "total": 5, "succeeded": 5, "failed": [], "results": [{"n": number} for number in range(5)],
    }  # fmt: skip
    lab.check()


def test_an_end_is_counted_once_however_often_it_is_read(lab: Lab) -> None:
    fan_out = FanOut(lab, 3)
    fan_out.start()
    lab.one.finish(lab.one.claim(1)[0])
    read = fan_out.state()["ends"]

    fan_out.gather(ends=read)
    fan_out.gather(lab.two, ends=read)

    assert fan_out.counters == (3, 2, 1, 0)
    assert ends(lab) == 0
    lab.check()


@pytest.mark.parametrize("deed", ["start", "gather"])
def test_a_slice_is_written_without_reading_the_other_items_of_the_list(lab: Lab, deed: str) -> None:
    read = "select pg_stat_get_xact_tuples_fetched('tasker.fan_out_items_pkey'::regclass)"
    fan_out = FanOut(lab, 1500, max_parallel=10)
    if deed == "gather":
        fan_out.start()
        assert end_all(lab.one) == 10

    with lab.transaction(lab.one):
        before = lab.one.value(read)
        getattr(fan_out, deed)()
        assert 0 < lab.one.value(read) - before < 100

    assert fan_out.counters == ((10, 10, 0, 0) if deed == "start" else (10, 0, 10, 0))


def test_a_child_ends_while_its_fan_out_is_locked(lab: Lab) -> None:
    fan_out = FanOut(lab, 2)
    fan_out.start()
    first, second = lab.one.claim()
    lab.one.finish(first)

    with lab.transaction(lab.two):
        fan_out.gather(lab.two)
        lab.one.finish(second)
        assert fan_out.gather(lab.one)["busy"]
    assert fan_out.counters == (2, 1, 1, 0)
    assert due(lab)["children"], "nobody has looked again"

    fan_out.gather()

    assert lab.states(fan_out.task)["a"] == "complete"
    lab.check()


def test_a_slice_is_started_once_by_two_sessions(lab: Lab) -> None:
    fan_out = FanOut(lab, 4, max_parallel=2)
    with lab.transaction(lab.two):
        assert len(fan_out.write(lab.two, [0, 1])) == 2
        assert fan_out.write(lab.one, [0, 1]) == []
    assert fan_out.write(lab.one, [0, 1]) == []
    assert fan_out.write(lab.one, [2, 3]) == [], "so many are open"

    assert fan_out.counters == (2, 2, 0, 0)
    lab.check()


def test_a_fan_out_is_opened_once(lab: Lab) -> None:
    fan_out = FanOut(lab, 2, opened=False)
    assert due(lab)["children"]

    assert fan_out.open(lab.one) == {"opened": True}
    assert fan_out.open(lab.two) == {"opened": False}
    assert lab.observer.value("select descendants from tasker.task_families") == 2
    lab.check()


def test_a_fan_out_too_deep_or_too_wide_is_not_opened(lab: Lab) -> None:
    fan_out = FanOut(lab, 3, opened=False)

    assert fan_out.open(lab.one, max_descendants=2) == {"too_many": 3}
    assert fan_out.open(lab.one, max_depth=0) == {"too_deep": 1}
    assert lab.one.core("child_work", {"limit": 10})["unplanned"], "its step waits, and can fail"


def test_too_many_failures_stop_the_start_and_cancel_the_others(lab: Lab) -> None:
    fan_out = FanOut(lab, 6, max_parallel=3, tolerated=1)
    children = fan_out.start()
    claims = {claim["task"]: claim for claim in lab.one.claim()}
    for child in children[:2]:
        lab.one.advance(fail(claims[child]), dead_letters=False)
    fan_out.gather()

    assert (fan_out.row.state, fan_out.counters) == ("s", (3, 1, 0, 2))
    assert fan_out.start() == []
    assert due(lab)["finished"] == {children[2]: "cancelled"}
    fan_out.gather()

    assert lab.states(fan_out.task)["a"] == "error"
    error = lab.observer.value("select error from tasker.step_failures order by failure_id desc limit 1")
    assert error["error_type"] == "too_many_children_failed"
    assert error["message"].startswith("3 of 6 child tasks failed, 1 tolerated")
    lab.check()


def test_a_child_that_an_operator_repairs_counts_as_succeeded(lab: Lab) -> None:
    fan_out = FanOut(lab, 2, tolerated=1)
    child, _ = fan_out.start()
    claims = {claim["task"]: claim for claim in lab.one.claim()}
    lab.one.advance(fail(claims[child]), dead_letters=False)
    fan_out.gather()
    assert fan_out.counters == (2, 1, 0, 1)

    lab.one.advance(operator("resolve", lab.steps(child)["s0"]))
    fan_out.gather()

    assert fan_out.counters == (2, 1, 1, 0)
    lab.check()


@pytest.mark.parametrize("deed", ["cancel", "resolve"])
def test_children_of_a_step_that_ends_are_cancelled(lab: Lab, deed: str) -> None:
    fan_out = FanOut(lab, 4, max_parallel=2)
    children = fan_out.start()

    if deed == "cancel":
        lab.one.call("cancel", {"task": fan_out.task, "reason": "test", "actor": "test"})
    else:
        lab.one.advance({"s": fan_out.key["step"], "t": fan_out.task, "kind": "resolve"})
    assert due(lab)["finished"] == dict.fromkeys(children, "cancelled")

    reasons = lab.observer.rows("select cancel_reason from tasker.task_details where cancel_reason is not null")
    assert [row.cancel_reason for row in reasons].count("parent_ended") == 2
    assert fan_out.start() == []
    assert ends(lab) == 2
    (stray,) = lab.one.core("child_work", {"limit": 10})["stray"]
    lab.one.call("gather", lab.one.args(**stray, ends=[]))
    assert ends(lab) == 0
    lab.check()


def test_a_cancel_sees_the_children_of_a_start_under_way(lab: Lab) -> None:
    """The cancel waits for the start, and its list of children is not that of before."""
    fan_out = FanOut(lab, 3)
    with lab.transaction(lab.two):
        children = fan_out.write(lab.two, [0, 1, 2])
        cancel = lab.later(lab.one.call, "cancel", {"task": fan_out.task, "reason": "test", "actor": "test"})
        lab.waits(cancel, lab.one, on=lab.two)
    assert cancel.result()["cancelled"]

    assert sorted(due(lab)["finished"]) == sorted(children)
    lab.check()


def test_a_start_after_a_cancel_creates_nothing(lab: Lab) -> None:
    fan_out = FanOut(lab, 3)
    lab.one.call("cancel", {"task": fan_out.task, "reason": "test", "actor": "test"})

    assert fan_out.write(lab.two, [0, 1, 2]) == []
    lab.check()


def test_a_step_that_runs_again_starts_new_children(lab: Lab) -> None:
    fan_out = FanOut(lab, 1)
    fan_out.start()
    lab.one.advance(fail(lab.one.claim()[0]), dead_letters=False)
    fan_out.gather()
    assert lab.states(fan_out.task)["a"] == "error"

    lab.one.advance({"s": fan_out.key["step"], "t": fan_out.task, "kind": "reset"})
    due(lab)

    (wait,) = lab.one.core("child_work", {"limit": 10})["unplanned"]
    assert wait["token"] > fan_out.key["token"]
    fan_out.key = {"step": wait["step"], "token": wait["token"]}
    assert fan_out.open(lab.one) == {"opened": True}
    assert len(fan_out.start()) == 1
    end_all(lab.one)
    fan_out.gather()
    assert lab.states(fan_out.task)["a"] == "complete"
    lab.check()


def test_results_of_a_child_with_several_steps_take_the_short_path_until_its_end(lab: Lab) -> None:
    fan_out = FanOut(lab, 1)
    fan_out.child = lab.chain(3, name="child")
    fan_out.start()
    (claim,) = lab.one.claim()
    answer = lab.one.advance(ok(claim))
    assert ends(lab) == (1 if answer.get("finished") else 0)
    lab.check()


def test_the_children_of_a_paused_task_are_not_started(lab: Lab) -> None:
    fan_out = FanOut(lab, 2)
    pause = {"task": fan_out.task, "reason": "test", "actor": "test", "slice": 100}
    lab.one.call("pause", pause)

    assert (fan_out.state()["items"], fan_out.state()["paused"]) == ([], True)
    lab.one.core("defer_fan_out", {**fan_out.key, "ms": 2000})
    assert lab.one.core("child_work", {"limit": 10})["fan_outs"] == []


def test_a_pause_covers_the_children_that_are_open(lab: Lab) -> None:
    fan_out = FanOut(lab, 3)
    fan_out.start()
    target = {"task": fan_out.task, "reason": "test", "actor": "test", "slice": 1}
    lab.one.call("pause", target)
    mark(lab)

    assert end_all(lab.one) == 0
    lab.check()
    lab.one.call("resume", target)
    mark(lab)

    assert work(lab) == 3
    fan_out.gather()
    assert lab.states(fan_out.task)["a"] == "complete"
    lab.check()


def mark(lab: Lab) -> None:
    while lab.one.call("marks", {"slice": 1}).get("more"):
        pass


def work(lab: Lab) -> int:
    """Run what can be claimed; how many steps these were."""
    done = 0
    while claims := lab.one.take():
        lab.one.finish(*claims)
        done += len(claims)
    return done


def test_outputs_that_are_too_large_together_are_refused_with_what_to_do(lab: Lab) -> None:
    fan_out = FanOut(lab, 1)
    fan_out.start()
    end_all(lab.one)
    (end,) = fan_out.state()["ends"]
    item = {"id": end["id"], "o": {}, "b": 1_048_577}
    lab.one.call("gather", lab.one.args(**fan_out.key, ends=[item]))

    error = lab.observer.value("select error from tasker.step_failures")
    assert error["error_type"] == "result_too_large"
    assert "collect: none" in error["message"]
    assert "context.children('a')" in error["message"]


def test_a_counter_that_differs_from_the_items_is_a_violation(lab: Lab) -> None:
    fan_out = FanOut(lab, 3)
    fan_out.start()
    lab.one.execute("update tasker.fan_outs set running = 2, succeeded = 1")

    rules = [row.rule for row in lab.observer.rows("select rule from tasker.violations_v1('{}')")]

    assert rules == ["counters of a fan-out differ from its items"]
    lab.one.execute("update tasker.fan_outs set running = 3, succeeded = 0")


def test_a_slice_of_retention_has_few_tasks_with_long_lists(lab: Lab) -> None:
    for _ in range(3):
        fan_out = FanOut(lab, 40)
        lab.one.call("cancel", {"task": fan_out.task, "reason": "test", "actor": "test"})
    named = str(lab.task(fan_out.task).named_task_uuid)

    args = {"named_task_uuid": named, "failed": True, "before": "2999-01-01", "steps": 50}

    assert lab.one.core("prune", args)["tasks"] == 2
    assert lab.observer.value("select count(*) from tasker.fan_out_items") == 40
