"""Links from a task to the step that started it: written with the child, once, and kept as long as they are needed."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from psycopg.rows import tuple_row

from tasker.db.sql_files import query
from tasker.settings.retention import RetentionRule
from tests.integration.engine.fleet.test_retention import aged, left, prune
from tests.support.engine_fixture import Item, Lab, fail, ok

UNBOUNDED = 10


def parent_of(claim: Item, **more: Any) -> Item:
    return {"step": claim["step"], "token": claim["token"], **more}


def start(lab: Lab, claim: Item, **entry: Any) -> str:
    """A child of this claim's step."""
    answer = lab.one.submit(lab.chain(1), {"parent": parent_of(claim), **entry}, max_depth=UNBOUNDED)
    (task,) = answer["created"]
    return str(task)


def links(lab: Lab) -> list[tuple[Any, ...]]:
    columns = "child_uuid::text, parent_step::text, parent_task::text, token, index, depth"
    return [tuple(row) for row in lab.observer.rows(f"select {columns} from tasker.task_links order by depth, index")]


def parent(lab: Lab) -> tuple[str, Item]:
    task = lab.submit_one(lab.chain(1, name="parent"))
    (claim,) = lab.one.claim()
    return task, claim


def test_a_child_is_linked_to_the_step_that_started_it(lab: Lab) -> None:
    task, claim = parent(lab)
    names = [f"{str(uuid4())[:30]}000000" for _ in range(2)]
    entries = [{"id": name, "parent": parent_of(claim, index=n)} for n, name in enumerate(names)]

    lab.one.submit(lab.chain(1), *entries, {}, max_depth=UNBOUNDED)

    assert links(lab) == [(child, claim["step"], task, 1, n, 1) for n, child in enumerate(names)]
    lab.check()


def test_a_child_that_is_submitted_again_is_not_created_and_not_linked_again(lab: Lab) -> None:
    _, claim = parent(lab)
    identity = str(uuid4())
    child = start(lab, claim, identity=identity)

    answer = lab.two.submit(lab.chain(1), {"parent": parent_of(claim), "identity": identity}, max_depth=UNBOUNDED)

    assert (answer["created"], [link[0] for link in links(lab)]) == ([], [child])


def test_a_child_is_listed_whose_clock_was_behind_that_of_its_parent(lab: Lab) -> None:
    task, claim = parent(lab)
    old = "01000000-0000-7000-8000-000000000000"
    lab.one.submit(lab.chain(1), {"id": old, "parent": parent_of(claim)}, max_depth=UNBOUNDED)

    which = {"task": task, "after": None, "step": None, "namespaces": None, "tenants": None, "limit": 10}
    with lab.observer.connection.cursor(row_factory=tuple_row) as cursor:
        page = cursor.execute(query("children", "children"), which).fetchall()

    assert [str(row[0]) for row in page] == [old]


def test_the_depth_grows_with_each_link_and_is_bounded(lab: Lab) -> None:
    _, claim = parent(lab)
    start(lab, claim)
    (below,) = lab.one.claim()
    names = [f"{str(uuid4())[:30]}000000" for _ in range(2)]
    entries = {"id": names[0], "parent": parent_of(below)}, {"id": names[1], "parent": parent_of(claim)}

    answer = lab.one.submit(lab.chain(1), *entries, max_depth=1)

    assert (answer["created"], answer["too_deep"]) == ([names[1]], [names[0]])
    start(lab, below)
    assert [link[-1] for link in links(lab)] == [1, 1, 2]
    assert "too_deep" not in lab.one.submit(lab.chain(1), {}), "a task without a parent has no depth"
    lab.check()


def test_a_child_is_kept_as_long_as_its_parent_may_start_it_again(lab: Lab) -> None:
    task, claim = parent(lab)
    child = start(lab, claim)
    lab.one.finish(*lab.one.claim())
    lab.one.advance(fail(claim), dead_letters=False)
    aged(lab, 400, child)

    prune(lab, RetentionRule(completed_days=30, failed_days=1000))
    assert left(lab) == {task, child}, "the failed step may be retried, and finds its child"

    aged(lab, 400, task)
    prune(lab, RetentionRule(completed_days=30, failed_days=30))
    prune(lab, RetentionRule(completed_days=30, failed_days=30))
    assert (left(lab), links(lab)) == (set(), [])


def test_a_parent_is_kept_until_its_children_have_ended(lab: Lab) -> None:
    task, claim = parent(lab)
    child = start(lab, claim)
    lab.one.advance(ok(claim))
    aged(lab, 400, task)

    prune(lab, RetentionRule(completed_days=30))
    assert left(lab) == {task, child}

    lab.one.finish(*lab.one.claim())
    prune(lab, RetentionRule(completed_days=30))
    assert (left(lab), links(lab)) == ({child}, [])
