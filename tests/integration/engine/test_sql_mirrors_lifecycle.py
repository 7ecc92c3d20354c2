"""The engine's SQL decides as the pure functions of `tasker.lifecycle` do, for every state, kind and count of steps."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from typing import Any

import psycopg
import pytest

from tasker.lifecycle.evaluate import StepCounts, evaluate_task, path_to
from tasker.lifecycle.machines import paths
from tasker.lifecycle.machines.machine import Machine
from tasker.lifecycle.machines.step import STEP, StepState
from tasker.lifecycle.machines.task import TASK, TERMINAL, TaskState
from tests.support.engine_fixture import Lab

KINDS: dict[str, list[paths.StepPath]] = {
    "ok": [paths.STEP_SUCCEED, paths.STEP_SETTLE_SUCCESS],
    "retry": [paths.STEP_RETRY_LATER, paths.STEP_SETTLE_RETRY],
    "fail": [
        paths.STEP_FAIL,
        paths.STEP_SETTLE_FAILURE,
        paths.STEP_REFUSE_PARKED_SUCCESS,
        paths.STEP_FAIL_UNSTARTED,
        paths.STEP_FAIL_UNSERVED,
    ],
    "release": [paths.STEP_RELEASE],
    "defer": [paths.STEP_DEFER],
    "hold": [paths.STEP_PUT_ASIDE],
    "promote": [paths.STEP_PROMOTE_HELD],
    "reset": [paths.STEP_RESET_HELD],
    "unhold": [(StepState.PENDING,)],
    "resolve": list(paths.STEP_RESOLVE.values()),
    "complete": list(paths.STEP_COMPLETE.values()),
    "cancel": list(paths.STEP_CANCEL.values()),
}


@pytest.fixture(scope="module")
def db(module_database_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(module_database_url, autocommit=True) as connection:
        yield connection


@pytest.mark.parametrize("kind", KINDS)
def test_each_change_of_a_step_takes_the_named_path_and_no_other(db: psycopg.Connection[Any], kind: str) -> None:
    expected = {str(path[0]): ">".join(path) for path in KINDS[kind]}

    for state in StepState:
        (found,) = db.execute("select tasker.step_path(%s, %s)", (state, kind)).fetchone() or ()
        assert found == expected.get(str(state)), state
        assert found is None or STEP.allows(StepState(name) for name in found.split(">"))


@pytest.mark.parametrize("machine", [STEP, TASK], ids=lambda machine: machine.subject)
def test_history_is_held_against_the_same_transitions(db: psycopg.Connection[Any], machine: Machine[Any, Any]) -> None:
    rows = db.execute(
        "select state, f from tasker.legal_transitions(), unnest(followers) as f where subject = %s", (machine.subject,)
    ).fetchall()

    assert sorted(rows) == sorted({(str(source), str(target)) for (source, _), target in machine.table.items()})


def test_an_unknown_kind_of_change_is_legal_nowhere(db: psycopg.Connection[Any]) -> None:
    found = {db.execute("select tasker.step_path(%s, 'explode')", (state,)).fetchone() for state in StepState}

    assert found == {(None,)}


def test_a_ready_step_goes_on_from_pending_by_the_named_paths(db: psycopg.Connection[Any]) -> None:
    """What `place_ready` appends to the path that ends in pending."""
    for before, enqueued, handed_over in (
        ((StepState.PENDING,), paths.STEP_ENQUEUE, paths.STEP_HAND_OVER),
        (paths.STEP_PROMOTE_HELD, paths.STEP_PROMOTE, paths.STEP_PROMOTE_HAND_OVER),
    ):
        assert (*before, StepState.ENQUEUED) == enqueued
        assert (*before, StepState.ENQUEUED, StepState.IN_PROGRESS) == handed_over
    assert (*paths.STEP_RESET_HELD, StepState.ENQUEUED) == paths.STEP_RESET


def _counts(limit: int) -> list[StepCounts]:
    """Every way to spread up to `limit` steps over what they may be; at most one of each but the done ones."""
    found = []
    for error, cancelled, active, retry, held, now in product((0, 1, 2), (0, 1), (0, 1, 2), (0, 1), (0, 1), (0, 1, 2)):
        used = error + cancelled + active + retry + held
        if now > active or used > limit:
            continue
        for done, left in product(range(limit + 1 - used), (0, 1)):
            if 0 < done + used + left <= limit:
                found.append(StepCounts(done + used + left, done, error, cancelled, active, retry, held, now))
    return found


CASES = [(state, counts) for state in TaskState for counts in _counts(4)]


@pytest.mark.parametrize("on_blocked", ["give_up", "wait"])
def test_a_task_is_evaluated_alike_for_every_state_and_count(db: psycopg.Connection[Any], on_blocked: Any) -> None:
    given = [
        [state, c.enqueued_now, c.total, c.done, c.error, c.cancelled, c.active, c.retry, c.ready_held]
        for state, c in CASES
    ]
    rows = db.execute(
        """select coalesce(tasker.task_path(c->>0, tasker.task_target(c->>0, n[1], n[2], n[3], n[4] + n[5], n[6], n[7],
             n[8], %s)), '')
           from jsonb_array_elements(%s::jsonb) with ordinality as x (c, i)
           cross join lateral (select array(select (c->>k)::int from generate_series(1, 8) k) as n) as numbers
           order by i""",
        (on_blocked, json.dumps(given)),
    ).fetchall()

    different = []
    for (state, counts), (path,) in zip(CASES, rows, strict=True):
        expected = evaluate_task(state, counts, on_blocked)
        walked = [TaskState(name) for name in path.split(">")] if path else []
        assert TASK.allows((state, *walked)), (state, path)
        if walked != expected:
            different.append((state, counts, path, ">".join(expected)))
    assert not different, f"{len(different)} of {len(CASES)}: {different[:5]}"


def test_the_way_to_each_target_is_the_shortest_legal_one(db: psycopg.Connection[Any]) -> None:
    targets = {TaskState.COMPLETE, TaskState.WAITING_FOR_DEPENDENCIES, TaskState.BLOCKED_BY_FAILURES}
    for state, target in product((s for s in TaskState if s not in TERMINAL - {TaskState.ERROR}), targets):
        (found,) = db.execute("select tasker.task_path(%s, %s)", (state, target)).fetchone() or ()
        assert found == ">".join(path_to(state, target)), (state, target)


def test_cancelling_and_resolving_a_task_is_legal_where_the_table_says_so(db: psycopg.Connection[Any]) -> None:
    for state in TaskState:
        (cancelled,) = db.execute("select tasker.task_path(%s, 'cancelled')", (state,)).fetchone() or ()
        expected = "" if state is TaskState.CANCELLED else "cancelled" if state in paths.TASK_CANCEL else None
        assert cancelled == expected, state
        (resolved,) = db.execute("select tasker.task_path(%s, 'resolved_manually')", (state,)).fetchone() or ()
        open_to_it = {paths.TASK_RESOLVE[0]: "resolved_manually", TaskState.RESOLVED_MANUALLY: ""}
        assert resolved == open_to_it.get(state), state


def test_a_submitted_task_and_its_roots_take_the_named_paths(lab: Lab) -> None:
    enqueued = lab.submit_one(lab.chain())
    lab.window = 0
    held = lab.submit_one(lab.chain())

    assert lab.task_paths(enqueued) == [">".join(paths.TASK_SUBMIT)]
    assert lab.step_paths(enqueued, "s0") == [">".join(paths.STEP_ENQUEUE)]
    assert lab.task_paths(held) == [">".join(paths.TASK_SUBMIT_HELD)]
    assert lab.step_paths(held, "s0") == []
