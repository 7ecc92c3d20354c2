"""The table of moves: its paths are legal, and are those that were written down by hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tasker.engine.states.machine import Machine
from tasker.engine.states.step import STEP, StepState
from tasker.engine.states.step_changes import CHANGES, LETTERS, PLACES, StepChangeKind, parking_path
from tasker.engine.states.task import TASK, TERMINAL, TaskState, task_path
from tests.support import paths
from tests.support.tables import for_each

MOVES: list[tuple[str, StepChangeKind]] = [*CHANGES.items(), *PLACES.items()]
BY_HAND = {
    "ok": [paths.STEP_SUCCEED, paths.STEP_SETTLE_SUCCESS],
    "retry": [paths.STEP_RETRY_LATER, paths.STEP_SETTLE_RETRY],
    "fail": [
        paths.STEP_FAIL,
        paths.STEP_SETTLE_FAILURE,
        paths.STEP_REFUSE_PARKED_SUCCESS,
        paths.STEP_FAIL_UNSTARTED,
        paths.STEP_FAIL_UNSERVED,
    ],
    "expire": [paths.STEP_FAIL_UNSTARTED, paths.STEP_FAIL_UNSERVED, paths.STEP_FAIL, paths.STEP_EXPIRE_RETRY],
    "ahead": [paths.STEP_RUN_AHEAD],
    "release": [paths.STEP_RELEASE],
    "defer": [paths.STEP_DEFER],
    "snooze": [paths.STEP_DEFER],
    "suspend": [(StepState.IN_PROGRESS,)],
    "resume": [(StepState.IN_PROGRESS, StepState.WAITING_FOR_RETRY, StepState.PENDING)],
    "hold": [paths.STEP_PUT_ASIDE],
    "promote": [paths.STEP_PROMOTE_HELD],
    "reset": [paths.STEP_RESET_HELD],
    "unhold": [(StepState.PENDING,)],
    "resolve": paths.STEP_RESOLVE,
    "complete": paths.STEP_COMPLETE,
    "cancel": paths.STEP_CANCEL,
    "skip": [(StepState.PENDING, StepState.CANCELLED)],
}


def _by_hand() -> Iterator[tuple[str, tuple[Any, ...]]]:
    for name, value in vars(paths).items():
        if name.startswith(("STEP_", "TASK_")):
            yield from ((f"{name}: {path[0]}", path) for path in (value if isinstance(value, list) else [value]))


ALL = dict(_by_hand())


@for_each(ALL)
def test_a_path_written_by_hand_is_legal(name: str) -> None:
    machine: Machine[Any, Any] = TASK if name.startswith("TASK_") else STEP
    kind = TaskState if name.startswith("TASK_") else StepState
    assert all(isinstance(state, kind) for state in ALL[name])
    assert len(ALL[name]) > 1
    assert machine.allows(ALL[name])


@pytest.mark.parametrize(("name", "move"), MOVES, ids=[name for name, _ in MOVES])
def test_every_path_of_a_move_is_legal_and_the_only_one_from_its_state(name: str, move: StepChangeKind) -> None:
    assert all(STEP.allows(path) for path in move.paths)
    assert len(move.by_state) == len(move.paths)


def test_the_kinds_of_change_take_the_paths_that_were_written_by_hand() -> None:
    assert {kind: set(move.paths) for kind, move in CHANGES.items()} == {k: set(p) for k, p in BY_HAND.items()}


def test_a_ready_step_goes_to_its_place_and_a_report_is_parked_by_the_paths_written_by_hand() -> None:
    assert set(PLACES["claim"].paths) == {paths.STEP_HAND_OVER, paths.STEP_CLAIM}
    assert PLACES["enqueue"].by_state[StepState.PENDING] == paths.STEP_ENQUEUE
    assert {kind: parking_path(kind) for kind, move in CHANGES.items() if move.reports} == {
        "ok": paths.STEP_PARK_SUCCESS,
        "retry": paths.STEP_PARK_FAILURE,
        "fail": paths.STEP_PARK_FAILURE,
    }
    assert CHANGES["promote"].paths[0] + paths.STEP_HAND_OVER[1:] == paths.STEP_PROMOTE_HAND_OVER
    assert CHANGES["promote"].paths[0] + paths.STEP_ENQUEUE[1:] == paths.STEP_PROMOTE
    assert CHANGES["reset"].paths[0] + paths.STEP_ENQUEUE[1:] == paths.STEP_RESET


def test_a_task_takes_the_paths_that_were_written_by_hand() -> None:
    for name, path in ALL.items():
        if name.startswith("TASK_"):
            assert task_path(path[0], path[-1]) == path[1:], name


def test_a_task_never_passes_through_a_final_state_and_is_cancelled_from_every_open_one() -> None:
    for state in TaskState:
        for target in TaskState:
            way = task_path(state, target) or ()
            assert TASK.allows((state, *way))
            assert not TERMINAL.intersection(way[:-1])
        assert (task_path(state, TaskState.CANCELLED) == (TaskState.CANCELLED,)) == (state not in TERMINAL)


def test_an_illegal_path_would_be_noticed() -> None:
    assert not STEP.allows((StepState.WAITING_FOR_RETRY, StepState.ENQUEUED))
    assert not TASK.allows((TaskState.STEPS_IN_PROCESS, TaskState.COMPLETE))


def test_each_state_has_a_letter_of_its_own() -> None:
    assert set(LETTERS) == {*StepState, *TaskState}
    assert len(set(LETTERS.values())) == len(LETTERS)
    assert all(len(letter) == 1 and letter.isupper() for letter in LETTERS.values())
