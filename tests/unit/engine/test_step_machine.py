"""Every state of a step with every event: the legal ones lead where the table says, all others are refused."""

from __future__ import annotations

from itertools import product

import pytest

from tasker.engine.states.step import GROUPS, STEP, StepState, StepTransitionEvent
from tests.support.tables import for_each

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
EXPECTED = {(StepState(source), StepTransitionEvent(event)): StepState(target) for source, event, target in ROWS}
EXPECTED |= {(StepState(a), StepTransitionEvent(b)): StepState(OPERATOR[b]) for a, b in product(OPEN.split(), OPERATOR)}


def test_there_are_ten_states() -> None:
    assert len(StepState) == 10


@for_each(list(product(StepState, StepTransitionEvent)))
def test_an_event_leads_where_it_should_or_nowhere(transition: tuple[StepState, StepTransitionEvent]) -> None:
    state, event = transition
    assert STEP.legal(state).get(event) == EXPECTED.get((state, event))


def test_complete_cancelled_and_resolved_steps_never_move_again() -> None:
    for state in (StepState.COMPLETE, StepState.CANCELLED, StepState.RESOLVED_MANUALLY):
        assert STEP.legal(state) == {}


def test_a_retry_is_enqueued_only_through_pending() -> None:
    path = STEP.shortest_path(StepState.WAITING_FOR_RETRY, StepState.ENQUEUED)
    assert path == (StepState.PENDING, StepState.ENQUEUED)


@pytest.mark.parametrize(
    ("group", "states"),
    [
        ("ended", "complete error cancelled resolved_manually"),
        ("done", "complete resolved_manually"),
        ("parked", "enqueued_for_orchestration enqueued_as_error_for_orchestration"),
        ("active", "enqueued in_progress enqueued_for_orchestration enqueued_as_error_for_orchestration"),
        (
            "under_way",
            "enqueued in_progress enqueued_for_orchestration enqueued_as_error_for_orchestration waiting_for_retry",
        ),
        ("to_run", "pending enqueued"),
        ("settled", "complete error waiting_for_retry"),
        ("failed", "error waiting_for_retry"),
    ],
)
def test_a_group_holds_exactly_its_states(group: str, states: str) -> None:
    assert GROUPS[group].states == set(states.split())
