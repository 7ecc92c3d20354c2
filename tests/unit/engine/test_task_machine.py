"""Every state of a task with every event: the legal ones lead where the table says, all others are refused."""

from __future__ import annotations

from itertools import product

import pytest

from tasker.engine.states import task as task_machine
from tasker.engine.states.task import TASK, TaskState, TaskTransitionEvent
from tests.support.tables import for_each

LEGAL = """
pending                   Start                 initializing
initializing              ReadyStepsFound       enqueuing_steps
initializing              NoStepsFound          complete
initializing              NoDependenciesReady   waiting_for_dependencies
enqueuing_steps           StepsEnqueued         steps_in_process
enqueuing_steps           EnqueueFailed         error
steps_in_process          AllStepsCompleted     evaluating_results
steps_in_process          StepCompleted         evaluating_results
steps_in_process          StepFailed            waiting_for_retry
evaluating_results        AllStepsSuccessful    complete
evaluating_results        ReadyStepsFound       enqueuing_steps
evaluating_results        NoDependenciesReady   waiting_for_dependencies
evaluating_results        PermanentFailure      blocked_by_failures
waiting_for_dependencies  DependenciesReady     evaluating_results
waiting_for_retry         RetryReady            enqueuing_steps
blocked_by_failures       GiveUp                error
blocked_by_failures       ManualResolution      resolved_manually
blocked_by_failures       StepRepaired          evaluating_results
error                     StepRepaired          enqueuing_steps
error                     Reset                 pending
pending                   Cancel                cancelled
initializing              Cancel                cancelled
enqueuing_steps           Cancel                cancelled
steps_in_process          Cancel                cancelled
evaluating_results        Cancel                cancelled
waiting_for_dependencies  Cancel                cancelled
waiting_for_retry         Cancel                cancelled
blocked_by_failures       Cancel                cancelled
"""
ROWS = [line.split() for line in LEGAL.strip().splitlines()]
EXPECTED = {(TaskState(source), TaskTransitionEvent(event)): TaskState(target) for source, event, target in ROWS}


def test_there_are_twelve_states() -> None:
    assert len(TaskState) == 12


@for_each(list(product(TaskState, TaskTransitionEvent)))
def test_an_event_leads_where_it_should_or_nowhere(transition: tuple[TaskState, TaskTransitionEvent]) -> None:
    state, event = transition
    assert TASK.legal(state).get(event) == EXPECTED.get((state, event))


def test_final_states_have_no_way_out_except_an_operators_from_error() -> None:
    ways_out = {state: set(TASK.legal(state)) for state in task_machine.TERMINAL}
    assert ways_out == {
        TaskState.COMPLETE: set(),
        TaskState.CANCELLED: set(),
        TaskState.RESOLVED_MANUALLY: set(),
        TaskState.ERROR: {TaskTransitionEvent.RESET, TaskTransitionEvent.STEP_REPAIRED},
    }


def test_every_state_is_reachable_from_pending() -> None:
    assert all(TASK.shortest_path(TaskState.PENDING, state) is not None for state in TaskState)


@pytest.mark.parametrize(
    ("group", "states"),
    [
        ("final", "complete error cancelled resolved_manually"),
        ("troubled", "error cancelled resolved_manually"),
        ("retrying", "steps_in_process waiting_for_retry"),
        ("passing", "pending initializing enqueuing_steps evaluating_results"),
    ],
)
def test_a_group_holds_exactly_its_states(group: str, states: str) -> None:
    assert task_machine.GROUPS[group].states == set(states.split())


def test_a_way_never_passes_through_a_final_state() -> None:
    path = TASK.shortest_path(TaskState.STEPS_IN_PROCESS, TaskState.PENDING, ends=task_machine.TERMINAL)
    assert path is None
