"""Every path that the engine writes is legal in its table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tasker.lifecycle.machines import paths
from tasker.lifecycle.machines.machine import Machine
from tasker.lifecycle.machines.step import STEP, StepState
from tasker.lifecycle.machines.task import TASK, TaskState


def _paths() -> Iterator[tuple[str, tuple[Any, ...]]]:
    for name, value in vars(paths).items():
        if name.startswith(("STEP_", "TASK_")):
            items = value.values() if isinstance(value, Mapping) else [value]
            yield from ((f"{name}: {path[0]}", path) for path in items)


ALL = dict(_paths())


@pytest.mark.parametrize("name", ALL)
def test_the_path_is_legal(name: str) -> None:
    machine: Machine[Any, Any] = TASK if name.startswith("TASK_") else STEP
    kind = TaskState if name.startswith("TASK_") else StepState
    assert all(isinstance(state, kind) for state in ALL[name])
    assert len(ALL[name]) > 1
    assert machine.allows(ALL[name])


def test_an_illegal_path_would_be_noticed() -> None:
    assert not STEP.allows((StepState.WAITING_FOR_RETRY, StepState.ENQUEUED))
    assert not TASK.allows((TaskState.STEPS_IN_PROCESS, TaskState.COMPLETE))


def test_a_step_can_be_cancelled_resolved_and_completed_from_every_open_state_and_from_error() -> None:
    final = {StepState.COMPLETE, StepState.CANCELLED, StepState.RESOLVED_MANUALLY}
    for by_state in (paths.STEP_CANCEL, paths.STEP_RESOLVE, paths.STEP_COMPLETE):
        assert set(by_state) == set(StepState) - final


def test_a_task_can_be_cancelled_from_every_state_that_is_not_final() -> None:
    final = {TaskState.COMPLETE, TaskState.ERROR, TaskState.CANCELLED, TaskState.RESOLVED_MANUALLY}
    assert set(paths.TASK_CANCEL) == set(TaskState) - final
