"""Every state of a step with every event: the legal ones lead where the table says, all others are refused."""

from __future__ import annotations

from itertools import product

import pytest

from tasker.errors import IllegalTransition
from tasker.lifecycle.machines import step as step_machine
from tasker.lifecycle.machines.step import STEP, StepEvent, StepState, transition

LEGAL = """
pending                              Enqueue                         enqueued
enqueued                             Start                           in_progress
in_progress                          EnqueueForOrchestration         enqueued_for_orchestration
enqueued_for_orchestration           Complete                        complete
in_progress                          EnqueueAsErrorForOrchestration  enqueued_as_error_for_orchestration
enqueued_as_error_for_orchestration  WaitForRetry                    waiting_for_retry
enqueued_as_error_for_orchestration  Fail                            error
enqueued_for_orchestration           Fail                            error
waiting_for_retry                    Retry                           pending
in_progress                          Complete                        complete
in_progress                          Fail                            error
pending                              Start                           in_progress
pending                              Fail                            error
enqueued                             Fail                            error
in_progress                          Release                         enqueued
in_progress                          Defer                           waiting_for_retry
enqueued                             Hold                            pending
error                                Reset                           pending
"""
OPEN = (
    "pending enqueued in_progress enqueued_for_orchestration enqueued_as_error_for_orchestration "
    "waiting_for_retry error"
)
OPERATOR = {"Cancel": "cancelled", "ResolveManually": "resolved_manually", "CompleteManually": "complete"}
ROWS = [line.split() for line in LEGAL.strip().splitlines()]
EXPECTED = {(StepState(source), StepEvent(event)): StepState(target) for source, event, target in ROWS}
EXPECTED |= {(StepState(a), StepEvent(b)): StepState(OPERATOR[b]) for a, b in product(OPEN.split(), OPERATOR)}


def test_there_are_ten_states() -> None:
    assert len(StepState) == 10


@pytest.mark.parametrize(("state", "event"), list(product(StepState, StepEvent)))
def test_an_event_leads_where_the_table_says_or_is_refused(state: StepState, event: StepEvent) -> None:
    if (state, event) in EXPECTED:
        assert transition(state, event) == EXPECTED[state, event]
    else:
        with pytest.raises(IllegalTransition):
            transition(state, event)


def test_a_claim_of_a_step_in_progress_is_refused_with_what_is_legal() -> None:
    with pytest.raises(IllegalTransition, match=r"a step in state 'in_progress' does not accept the event Start"):
        transition(StepState.IN_PROGRESS, StepEvent.START)


def test_complete_cancelled_and_resolved_steps_never_move_again() -> None:
    for state in (StepState.COMPLETE, StepState.CANCELLED, StepState.RESOLVED_MANUALLY):
        assert STEP.legal(state) == {}


def test_a_retry_is_enqueued_only_through_pending() -> None:
    path = STEP.shortest_path(StepState.WAITING_FOR_RETRY, StepState.ENQUEUED)
    assert path == (StepState.PENDING, StepState.ENQUEUED)


@pytest.mark.parametrize(
    ("predicate", "states"),
    [
        (step_machine.is_terminal, "complete error cancelled resolved_manually"),
        (step_machine.is_error, "enqueued_as_error_for_orchestration waiting_for_retry error"),
        (
            step_machine.is_active,
            "in_progress enqueued_for_orchestration enqueued_as_error_for_orchestration",
        ),
        (
            step_machine.is_in_processing_pipeline,
            "enqueued in_progress enqueued_for_orchestration enqueued_as_error_for_orchestration",
        ),
        (step_machine.is_ready_for_claiming, "pending enqueued"),
        (step_machine.satisfies_dependencies, "complete resolved_manually"),
    ],
)
def test_a_predicate_holds_for_exactly_its_states(predicate, states: str) -> None:
    assert {state.value for state in StepState if predicate(state)} == set(states.split())
