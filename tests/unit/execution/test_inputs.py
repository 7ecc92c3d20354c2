"""What handlers read, as the worker keeps it: theirs alone, complete, bounded."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tasker.engine.changes import ExpansionRecord
from tasker.engine.exchange import TaskInputs
from tasker.execution.inputs import MOST_OFTEN, OFTEN, InputCache
from tasker.handlers.copies import deep_copy
from tasker.json_values import JsonText
from tasker.template.plan import BatchSettings
from tests.support.random_plans import BATCHABLE, DECISION, DEFERRED, WORKER, Spec, build_plan


def row(**context: Any) -> TaskInputs:
    return TaskInputs(context, "c")


def with_results(**results: tuple[int, Any]) -> dict[str, TaskInputs]:
    return {"t": TaskInputs({}, "c", results=results)}


def test_a_handler_that_changes_what_it_got_changes_it_for_nobody_else() -> None:
    stored = {"rows": [{"id": 1, "tags": ["a"]}], "total": {"net": 1}}
    mine = deep_copy(stored)
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


BATCHES = build_plan(
    Spec("cut", BATCHABLE, batch=BatchSettings()),
    Spec("work", WORKER, ("cut",)),
    Spec("join", DEFERRED, ("work",)),
    Spec("choose", DECISION, ("join",)),
    Spec("branch", depends_on=("choose",)),
    Spec("last", depends_on=("branch",)),
)


def completed(cache: InputCache, name: str, ordinal: int, growth: ExpansionRecord | None = None) -> None:
    result: Any = SimpleNamespace(
        claim=SimpleNamespace(task_uuid="t", ordinal=ordinal, name=name),
        success=SimpleNamespace(encoded=JsonText(f'{{"of":"{name}"}}')),
        plan=BATCHES,
    )
    cache.add_result(result, growth)


def workers(*numbers: int) -> ExpansionRecord:
    return ExpansionRecord(0, [{"name": f"work_{n:03}", "ordinal": 1} for n in numbers] + [*grows(2).steps])


def grows(*ordinals: int) -> ExpansionRecord:
    return ExpansionRecord(1, [{"name": BATCHES.steps[ordinal].name, "ordinal": ordinal} for ordinal in ordinals])


def knows(cache: InputCache, step: str) -> bool:
    return cache.knows("t", BATCHES, BATCHES.by_name[step])


def test_below_batch_workers_results_are_asked_for_where_it_is_not_known_how_many_there_are() -> None:
    cache = InputCache()
    cache.learn(with_results(cut=(0, {}), work_001=(1, {"sum": 1})))
    completed(cache, "work_002", 1)

    assert not knows(cache, "join")
    found = cache.dependency_results(cache.require("t"), BATCHES, BATCHES.by_name["join"])
    assert {"work_001", "work_002"} <= found.keys()


def test_below_batch_workers_nothing_is_asked_for_once_all_that_were_created_here_have_completed_here() -> None:
    cache = InputCache()
    cache.learn({"t": row()})
    completed(cache, "cut", 0, workers(1, 2))
    completed(cache, "work_002", 1)
    assert not knows(cache, "join")
    completed(cache, "work_001", 1)
    assert knows(cache, "join")


def test_below_a_second_decision_nothing_is_asked_for_where_that_was_made_here_too() -> None:
    cache = InputCache()
    cache.learn({"t": row()})
    completed(cache, "cut", 0, ExpansionRecord(0, [*workers(1).steps, *grows(3).steps]))
    for name, ordinal in (("work_001", 1), ("join", 2), ("choose", 3), ("branch", 4)):
        completed(cache, name, ordinal)
    assert not knows(cache, "last"), "what has been chosen is not known"
    completed(cache, "choose", 3, grows(4, 5))
    assert knows(cache, "last")


def test_what_a_database_said_that_is_not_there_any_more_is_not_known_below_decisions_either() -> None:
    cache = InputCache()
    cache.learn({"t": row()})
    completed(cache, "cut", 0, workers(1))
    cache.clear()
    cache.learn(with_results(cut=(0, {}), work_001=(1, {})))
    assert not knows(cache, "join")


def test_results_of_instances_come_in_the_order_of_their_numbers() -> None:
    numbers = [1002, 7, 999, 1000, 10]
    cache = InputCache()
    cache.learn({"t": row()})
    for number in numbers:
        completed(cache, f"work_{number:03}", 1)
    completed(cache, "cut", 0, workers(*numbers))

    found = cache.dependency_results(cache.require("t"), BATCHES, BATCHES.by_name["join"])
    assert [*found] == ["cut", *(f"work_{number:03}" for number in sorted(numbers))]


def test_a_task_of_which_many_steps_have_begun_is_told_to_be_known_as_long_as_it_is() -> None:
    cache = InputCache(limit=MOST_OFTEN + 2)
    tasks = [f"t{n}" for n in range(MOST_OFTEN + 2)]
    cache.learn({task: row() for task in tasks})
    for _ in range(OFTEN - 1):
        cache.require("t0")
    assert cache.often == []
    cache.require("t0")
    assert cache.often == ["t0"]
    cache.forget(["t0"])
    assert cache.often == []
    for task in tasks[1:]:
        for _ in range(OFTEN):
            cache.require(task)
    assert len(cache.often) == MOST_OFTEN
    cache.learn({f"new{n}": row() for n in range(MOST_OFTEN)})
    assert cache.often == tasks[-2:]
    cache.clear()
    assert cache.often == []


def test_a_task_that_is_known_is_not_what_makes_room_for_those_that_are_learned_with_it() -> None:
    cache = InputCache(limit=2)
    plan = build_plan(Spec("a"))
    cache.learn({"one": row()})
    cache.learn({"two": row()})
    assert cache.knows("one", plan, plan.by_name["a"])
    cache.learn({"three": row()})
    assert cache.require("one")


def test_a_deadline_that_was_lifted_is_that_of_the_newest_answer() -> None:
    cache = InputCache()
    cache.learn({"t": TaskInputs({}, "c", ends_at=5.0)})
    for _ in range(OFTEN):
        cache.require("t")
    assert cache.often == [], "the next claim asks for its deadline"

    cache.learn({"t": TaskInputs({}, "c")})

    assert cache.require("t").ends_at is None
    assert cache.often == ["t"]
