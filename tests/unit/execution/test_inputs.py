"""What handlers read, as the worker keeps it: theirs alone, complete, bounded."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tasker.contracts.json_text import JsonText
from tasker.contracts.own_copy import own_copy
from tasker.contracts.plan import BatchSettings
from tasker.execution.inputs import InputCache
from tasker.services.engine.claims import TaskInputs
from tests.support.random_plans import BATCHABLE, DEFERRED, WORKER, Spec, build_plan


def row(**context: Any) -> TaskInputs:
    return TaskInputs(context, "c")


def with_results(**results: tuple[int, Any]) -> dict[str, TaskInputs]:
    return {"t": TaskInputs({}, "c", results=results)}


def test_a_handler_that_changes_what_it_got_changes_it_for_nobody_else() -> None:
    stored = {"rows": [{"id": 1, "tags": ["a"]}], "total": {"net": 1}}
    mine = own_copy(stored)
    mine["rows"][0]["tags"].append("b")
    mine["rows"].append({})
    mine["total"]["net"] = 2
    mine["new"] = True

    assert stored == {"rows": [{"id": 1, "tags": ["a"]}], "total": {"net": 1}}


def test_two_steps_below_one_result_each_get_a_copy_of_their_own() -> None:
    plan = build_plan(Spec("a"), Spec("b", depends_on=("a",)), Spec("c", depends_on=("a",)))
    cache = InputCache()
    cache.learn(with_results(a=(0, {"list": [1], "deep": {"x": 1}})))
    first, second = (cache.dependency_results(cache.require("t"), plan, plan.by_name[name]) for name in "bc")
    first["a"]["list"].append(2)
    first["a"]["deep"]["x"] = 2
    first["a"]["more"] = 1

    assert second == {"a": {"list": [1], "deep": {"x": 1}}}


def test_all_tasks_of_one_answer_are_there_for_its_steps_however_many() -> None:
    cache = InputCache(limit=2)
    cache.learn({"old": row()})
    tasks = {f"t{n}": row(n=n) for n in range(5)}
    cache.learn(tasks)

    assert [cache.require(task).context["n"] for task in tasks] == [0, 1, 2, 3, 4]


def test_what_was_used_least_recently_makes_room() -> None:
    cache = InputCache(limit=2)
    plan = build_plan(Spec("a"))
    for task in ("one", "two", "one", "three"):
        cache.learn({task: row()})

    assert [cache.knows(task, plan, plan.by_name["a"]) for task in ("one", "two", "three")] == [True, False, True]


def test_below_batch_workers_results_are_always_asked_for_since_only_the_run_tells_how_many_there_are() -> None:
    batch = BatchSettings()
    plan = build_plan(
        Spec("cut", BATCHABLE, batch=batch),
        Spec("work", WORKER, ("cut",)),
        Spec("join", DEFERRED, ("work",)),
    )
    cache = InputCache()
    cache.learn(with_results(cut=(0, {}), work=(1, {}), work_001=(1, {"sum": 1})))
    result: Any = SimpleNamespace(
        claim=SimpleNamespace(task_uuid="t", ordinal=1, name="work_002"),
        success=SimpleNamespace(encoded=JsonText('{"sum":2}')),
        plan=plan,
    )
    cache.add_result(result)

    assert not cache.knows("t", plan, plan.by_name["join"])
    found = cache.dependency_results(cache.require("t"), plan, plan.by_name["join"])
    assert {"work_001", "work_002"} <= found.keys()
