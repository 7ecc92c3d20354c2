"""Every kind of move, asked for in every state: the functions that move steps do what the table says, and no more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tasker.engine.states.step import PARKED, PIPELINE, SATISFYING, StepState
from tasker.engine.states.step_changes import CHANGES, PLACES, Attempts, Token, parking_path
from tests.support.engine_fixture import Lab
from tests.support.random_plans import Spec

S = StepState
TOKEN, ATTEMPTS = 7, 5
AFTER = {Attempts.UNCHANGED: 5, Attempts.COUNTED: 6, Attempts.RETURNED: 4, Attempts.RESET: 0}
COUNTERS = {S.WAITING_FOR_RETRY: "retrying", S.ERROR: "failed", S.CANCELLED: "cancelled"}
Moved = tuple[str, int, int, list[str]]
"""A step's state, by how much its token has grown, its attempts, and what the history says of the write."""


@pytest.fixture(scope="module")
def lab(module_database_url: str) -> Iterator[Lab]:
    """Without a check of its invariants: the steps are put into their states by hand."""
    lab = Lab(module_database_url)
    yield lab
    lab.close()


def step_in(lab: Lab, state: StepState) -> tuple[str, Any]:
    """A task of two independent steps, of which `a` is in this state, with token 7 and attempt 5; and its row."""
    task = lab.submit_one(lab.plan(Spec("a"), Spec("b")))
    lab.observer.execute(
        "update tasker.workflow_steps set state = %s, claim_token = %s, attempts = %s, worker_uuid = %s "
        "where task_uuid = %s and name = 'a'",
        state,
        TOKEN,
        ATTEMPTS,
        lab.one.worker if state in (S.IN_PROGRESS, *PARKED) else None,
        task,
    )
    counter = "active" if state in PIPELINE else "done" if state in SATISFYING else COUNTERS.get(state)
    more = f", {counter} = {counter} + 1" if counter and counter != "active" else ""
    active = 2 if counter == "active" else 1
    lab.observer.execute(f"update tasker.tasks set active = {active}{more} where task_uuid = %s", task)
    return task, lab.steps(task)["a"]


def moved(lab: Lab, task: str, before: Any) -> Moved:
    after = lab.steps(task)["a"]
    return after.state, after.claim_token - before.claim_token, after.attempts, lab.step_paths(task, "a")[1:]


def unmoved(state: StepState) -> Moved:
    return (state, 0, ATTEMPTS, [])


@pytest.mark.parametrize("kind", [kind for kind in CHANGES if kind not in ("cancel", "ahead")])
def test_a_change_moves_a_step_as_the_table_says_or_not_at_all(lab: Lab, kind: str) -> None:
    move = CHANGES[kind]
    for state in StepState:
        task, before = step_in(lab, state)
        item = {"s": str(before.workflow_step_uuid), "t": task, "kind": kind, "d": 60_000}

        answer = lab.one.advance(item, window=0)  # no room: what is to run again is held where the path ends

        path = move.by_state.get(state)
        assert bool(answer.get("verdicts")) == (path is None), state
        if path is None:
            assert moved(lab, task, before) == unmoved(state)
            continue
        walked = [">".join(path)] if len(path) > 1 else []
        assert moved(lab, task, before) == (path[-1], move.token is Token.GROWS, AFTER[move.attempts], walked), state


@pytest.mark.parametrize("kind", ["claim", "enqueue", "wait", "explode"])
def test_what_is_no_kind_of_change_moves_nothing(lab: Lab, kind: str) -> None:
    for state in StepState:
        task, before = step_in(lab, state)

        answer = lab.one.advance({"s": str(before.workflow_step_uuid), "t": task, "kind": kind})

        assert answer["verdicts"]
        assert moved(lab, task, before) == unmoved(state)


@pytest.mark.parametrize("kind", [kind for kind, move in CHANGES.items() if move.reports])
def test_a_report_is_parked_from_the_state_that_the_table_says_alone(lab: Lab, kind: str) -> None:
    path = parking_path(kind)
    for state in StepState:
        task, before = step_in(lab, state)
        item = {"s": str(before.workflow_step_uuid), "t": task, "kind": kind, "k": TOKEN}

        answer = lab.one.core("park", {"worker": lab.one.worker, "items": [item]})

        assert bool(answer.get("verdicts")) == (state != path[0])
        parked = (path[-1], 0, ATTEMPTS, [">".join(path)])
        assert moved(lab, task, before) == (parked if state == path[0] else unmoved(state)), state


def test_a_hint_claims_a_step_that_is_enqueued_and_no_other(lab: Lab) -> None:
    path = PLACES["claim"].by_state[S.ENQUEUED]
    for state in StepState:
        task, before = step_in(lab, state)

        answer = lab.one.core("claim", lab.one.args(steps=[str(before.workflow_step_uuid)]))

        claims = [(claim["token"], claim["attempt"]) for claim in answer.get("claims") or ()]
        assert claims == ([(TOKEN + 1, ATTEMPTS + 1)] if state is S.ENQUEUED else [])
        claimed = (path[-1], 1, ATTEMPTS + 1, [">".join(path)])
        assert moved(lab, task, before) == (claimed if state is S.ENQUEUED else unmoved(state)), state


def test_a_step_that_is_handed_over_goes_the_whole_way_of_the_table(lab: Lab) -> None:
    task, before = step_in(lab, S.WAITING_FOR_RETRY)

    lab.one.advance({"s": str(before.workflow_step_uuid), "t": task, "kind": "promote"}, slots=1)

    path = CHANGES["promote"].paths[0] + PLACES["claim"].by_state[S.PENDING][1:]
    assert moved(lab, task, before) == (path[-1], 1, ATTEMPTS + 1, [">".join(path)])


def test_cancelling_a_task_cancels_the_steps_that_the_table_says(lab: Lab) -> None:
    for state in StepState:
        task, before = step_in(lab, state)

        lab.one.core("cancel", {"task": task, "reason": "enough", "actor": "me"})

        path = CHANGES["cancel"].by_state.get(state)
        cancelled = (path[-1], 1, ATTEMPTS, [">".join(path)]) if path else unmoved(state)
        assert moved(lab, task, before) == cancelled, state
