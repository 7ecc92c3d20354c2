"""The engine's SQL decides as the tables of `tasker.engine` say, for every state, kind and count of steps."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import psycopg
import pytest

from tasker.engine.states.machine import Machine, StateGroup
from tasker.engine.states.step import GROUPS as STEP_GROUPS
from tasker.engine.states.step import STEP, StepState
from tasker.engine.states.step_changes import CHANGES, LETTERS, PLACES, Attempts, Token
from tasker.engine.states.task import GROUPS as TASK_GROUPS
from tasker.engine.states.task import TASK, TaskState, task_path
from tests.support import paths
from tests.support.engine_fixture import Lab
from tests.support.evaluation import StepCounts, evaluate_task
from tools.lifecycle_sql import FILES, text
from tools.moves_sql import FLAGS
from tools.sql_text import path


@pytest.fixture(scope="module")
def db(module_database_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(module_database_url, autocommit=True) as connection:
        yield connection


def answers(db: psycopg.Connection[Any], call: str, rows: Sequence[tuple[Any, ...]]) -> list[Any]:
    """What `call`, of the parameters c->>0, c->>1 ..., answers for each row."""
    query = f"select {call} from jsonb_array_elements(%s::jsonb) with ordinality as x (c, i) order by i"
    return [answer for (answer,) in db.execute(query.encode(), (json.dumps(rows),))]


@pytest.mark.parametrize("kind", [*CHANGES, "explode"])
def test_each_change_of_a_step_takes_the_path_of_the_table_and_no_other(db: psycopg.Connection[Any], kind: str) -> None:
    by_state = CHANGES[kind].by_state if kind in CHANGES else {}
    found = answers(db, "tasker.step_path(c->>0, c->>1)", [(state, kind) for state in StepState])

    assert found == [path(by_state[state]) if state in by_state else None for state in StepState]


def test_a_change_does_to_the_token_and_the_attempts_what_the_table_says(db: psycopg.Connection[Any]) -> None:
    grows = {Token.UNCHANGED: (0, 0), Token.GROWS: (1, 1), Token.GROWS_WHEN_LOST: (0, 1)}
    tokens = answers(
        db,
        "array[tasker.kind_token(c->>0, 7, false), tasker.kind_token(c->>0, 7, true)]",
        [(kind,) for kind in CHANGES],
    )
    attempts = answers(db, "tasker.kind_attempts(c->>0, 5)", [(kind,) for kind in CHANGES])

    assert tokens == [[7 + growth for growth in grows[move.token]] for move in CHANGES.values()]
    assert attempts == [AFTER_FIVE[move.attempts] for move in CHANGES.values()]


AFTER_FIVE = {Attempts.UNCHANGED: 5, Attempts.COUNTED: 6, Attempts.RETURNED: 4, Attempts.RESET: 0}


def test_a_place_does_to_path_state_token_and_attempts_what_the_table_says(db: psycopg.Connection[Any]) -> None:
    cases = [(place, states) for place, move in PLACES.items() for states in move.paths]
    found = answers(
        db,
        "jsonb_build_array(tasker.placed_path(c->>1, c->>0), tasker.placed_path('F' || (c->>1), c->>0), "
        "tasker.place_state(c->>0), tasker.place_token(c->>0, 7), tasker.place_attempts(c->>0, 5))",
        [(place, LETTERS[states[0]]) for place, states in cases],
    )

    for (place, states), (walked, further, state, token, attempts) in zip(cases, found, strict=True):
        assert walked == path(states)
        assert further == "F" + walked
        assert state in (states[-1], None)
        assert token == 7 + (PLACES[place].token is Token.GROWS)
        assert attempts == AFTER_FIVE[PLACES[place].attempts]


@pytest.mark.parametrize(("subject", "groups"), [("step", STEP_GROUPS), ("task", TASK_GROUPS)])
def test_a_group_of_states_is_the_same_in_sql(
    db: psycopg.Connection[Any], subject: str, groups: Mapping[str, StateGroup]
) -> None:
    states = sorted({str(state) for state in (*StepState, *TaskState)})
    for name, group in groups.items():
        found = answers(db, f"tasker.{subject}_is_{name}(c->>0)", [(state,) for state in states])
        assert found == [state in group.states for state in states], name


def test_a_kind_is_marked_alike_in_sql(db: psycopg.Connection[Any]) -> None:
    for flag in FLAGS:
        found = answers(db, f"tasker.kind_{flag}(c->>0)", [(kind,) for kind in CHANGES])
        assert found == [getattr(move, flag) for move in CHANGES.values()], flag
    pairs = list(product(CHANGES, StepState))
    accepted = answers(db, "tasker.kind_was_accepted(c->>0, c->>1)", pairs)
    assert accepted == [state in CHANGES[kind].accepted_in for kind, state in pairs]


@pytest.mark.parametrize("machine", [STEP, TASK], ids=lambda machine: machine.subject)
def test_history_is_held_against_the_same_transitions(db: psycopg.Connection[Any], machine: Machine[Any, Any]) -> None:
    rows = db.execute(
        "select state, f from tasker.legal_transitions(), unnest(followers) as f where subject = %s", (machine.subject,)
    ).fetchall()

    assert sorted(rows) == sorted({(str(source), str(target)) for (source, _), target in machine.table.items()})


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


TASK_STATES = {LETTERS[state]: state for state in TaskState}
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
    for (state, counts), (way,) in zip(CASES, rows, strict=True):
        expected = evaluate_task(state, counts, on_blocked)
        walked = [TASK_STATES[letter] for letter in way]
        assert TASK.allows((state, *walked)), (state, way)
        if walked != expected:
            different.append((state, counts, way, path(expected)))
    assert not different, f"{len(different)} of {len(CASES)}: {different[:5]}"


def test_a_task_takes_the_same_way_from_every_state_to_every_other(db: psycopg.Connection[Any]) -> None:
    pairs = list(product(TaskState, TaskState))
    ways = [task_path(state, target) for state, target in pairs]

    found = answers(db, "tasker.task_path(c->>0, c->>1)", pairs)

    assert found == [None if way is None else path(way) for way in ways]


def test_a_submitted_task_and_its_roots_take_the_named_paths(lab: Lab) -> None:
    enqueued = lab.submit_one(lab.chain())
    lab.window = 0
    held = lab.submit_one(lab.chain())

    assert lab.task_paths(enqueued) == [">".join(paths.TASK_SUBMIT)]
    assert lab.step_paths(enqueued, "s0") == [">".join(paths.STEP_ENQUEUE)]
    assert lab.task_paths(held) == [">".join(paths.TASK_SUBMIT_HELD)]
    assert lab.step_paths(held, "s0") == []


def test_what_is_generated_stands_in_the_plan_itself_and_is_no_call(db: psycopg.Connection[Any]) -> None:
    """A call of a function costs many times what its expression does, for each row."""
    columns = {"text": "s.name", "bigint": "s.claim_token", "int": "s.attempts", "boolean": "s.retryable"}
    signature = re.compile(r"function (tasker\.\w+)\(([^)]+)\)")
    functions = [found for name in FILES for found in signature.findall(text(name))]
    calls = [
        f"{name}({', '.join(columns[parameter.split()[1]] for parameter in parameters.split(', '))})"
        for name, parameters in functions
    ]

    plan = db.execute(f"explain (verbose) select {', '.join(calls)} from tasker.workflow_steps s".encode()).fetchall()

    said = "\n".join(line for (line,) in plan)
    assert len(functions) > 20
    assert not [name for name, _ in functions if f"{name}(" in said]
