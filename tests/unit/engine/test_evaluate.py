"""Where one evaluation leads a task, from every state and for every mixture of steps."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasker.engine.states.task import (
    TASK,
    TERMINAL,
    TaskState,
    completion_percentage,
    execution_status,
    health_status,
    recommended_action,
)
from tests.support import paths
from tests.support.evaluation import StepCounts, evaluate_task

S = TaskState
FINISHED = (S.COMPLETE, S.CANCELLED, S.RESOLVED_MANUALLY)
OPEN = [state for state in S if state not in FINISHED]

READY = StepCounts(total=4, done=1, active=1, enqueued_now=1)
SIBLINGS = StepCounts(total=4, done=1, active=2)
SIBLINGS_AND_RETRY = StepCounts(total=4, done=1, active=1, retry=1)
RETRY = StepCounts(total=4, done=1, retry=1)
HELD = StepCounts(total=4, done=1, ready_held=2)
FAILED_AND_RUNNING = StepCounts(total=4, done=1, error=1, active=1)
FAILED_AND_RETRY = StepCounts(total=4, done=1, error=1, retry=1)
FAILED = StepCounts(total=4, done=1, error=1)
DONE = StepCounts(total=4, done=4)


def path(text: str) -> list[TaskState]:
    return [S(state) for state in text.split()]


@pytest.mark.parametrize(
    ("state", "counts", "expected"),
    [
        ("pending", READY, "initializing enqueuing_steps steps_in_process"),
        ("pending", HELD, "initializing waiting_for_dependencies"),
        ("initializing", READY, "enqueuing_steps steps_in_process"),
        ("enqueuing_steps", READY, "steps_in_process"),
        ("steps_in_process", READY, "evaluating_results enqueuing_steps steps_in_process"),
        ("steps_in_process", SIBLINGS, "evaluating_results waiting_for_dependencies"),
        ("steps_in_process", SIBLINGS_AND_RETRY, "evaluating_results waiting_for_dependencies"),
        ("steps_in_process", RETRY, "waiting_for_retry"),
        ("steps_in_process", FAILED_AND_RETRY, "waiting_for_retry"),
        ("steps_in_process", HELD, "evaluating_results waiting_for_dependencies"),
        ("steps_in_process", DONE, "evaluating_results complete"),
        ("steps_in_process", FAILED_AND_RUNNING, "evaluating_results waiting_for_dependencies"),
        ("steps_in_process", FAILED, "evaluating_results blocked_by_failures error"),
        ("evaluating_results", READY, "enqueuing_steps steps_in_process"),
        ("evaluating_results", SIBLINGS, "waiting_for_dependencies"),
        ("evaluating_results", RETRY, "waiting_for_dependencies"),
        ("evaluating_results", DONE, "complete"),
        ("evaluating_results", FAILED, "blocked_by_failures error"),
        ("waiting_for_dependencies", READY, "evaluating_results enqueuing_steps steps_in_process"),
        ("waiting_for_dependencies", SIBLINGS, ""),
        ("waiting_for_dependencies", RETRY, ""),
        ("waiting_for_dependencies", DONE, "evaluating_results complete"),
        ("waiting_for_dependencies", FAILED, "evaluating_results blocked_by_failures error"),
        ("waiting_for_retry", READY, "enqueuing_steps steps_in_process"),
        ("waiting_for_retry", RETRY, ""),
        ("waiting_for_retry", DONE, "enqueuing_steps steps_in_process evaluating_results complete"),
        ("waiting_for_retry", FAILED, "enqueuing_steps steps_in_process evaluating_results blocked_by_failures error"),
        ("blocked_by_failures", READY, "evaluating_results enqueuing_steps steps_in_process"),
        ("blocked_by_failures", DONE, "evaluating_results complete"),
        ("blocked_by_failures", FAILED, "error"),
        ("error", READY, "enqueuing_steps steps_in_process"),
        ("error", DONE, "enqueuing_steps steps_in_process evaluating_results complete"),
        ("error", FAILED, ""),
    ],
)
def test_a_task_goes_the_shortest_legal_way(state: str, counts: StepCounts, expected: str) -> None:
    assert evaluate_task(S(state), counts) == path(expected)


@pytest.mark.parametrize("state", FINISHED)
@pytest.mark.parametrize("counts", [READY, SIBLINGS, RETRY, FAILED, DONE])
def test_a_finished_task_stays_where_it_is(state: TaskState, counts: StepCounts) -> None:
    assert evaluate_task(state, counts) == []


def test_a_blocked_task_can_wait_for_a_person() -> None:
    assert evaluate_task(S.STEPS_IN_PROCESS, FAILED, "wait") == path("evaluating_results blocked_by_failures")
    assert evaluate_task(S.BLOCKED_BY_FAILURES, FAILED, "wait") == []


def test_a_cancelled_step_blocks_what_waits_for_it() -> None:
    counts = StepCounts(total=3, done=1, cancelled=1)
    assert evaluate_task(S.STEPS_IN_PROCESS, counts) == path("evaluating_results blocked_by_failures error")


def test_a_failure_waits_for_independent_branches_to_end() -> None:
    assert S.ERROR not in evaluate_task(S.STEPS_IN_PROCESS, FAILED_AND_RUNNING)
    assert S.ERROR not in evaluate_task(S.STEPS_IN_PROCESS, StepCounts(total=4, error=1, ready_held=1))


def test_the_named_paths_are_what_evaluation_answers() -> None:
    cases = {
        paths.TASK_SUBMIT: READY,
        paths.TASK_SUBMIT_HELD: HELD,
        paths.TASK_SUBMIT_EMPTY: StepCounts(total=0),
        paths.TASK_MORE_STEPS: READY,
        paths.TASK_WAIT_FOR_SIBLINGS: SIBLINGS,
        paths.TASK_WAIT_FOR_RETRY: RETRY,
        paths.TASK_RETRY: READY,
        paths.TASK_COMPLETE: DONE,
        paths.TASK_GIVE_UP: FAILED,
        paths.TASK_REOPEN: READY,
    }
    for named, counts in cases.items():
        assert evaluate_task(named[0], counts) == list(named[1:])
    assert evaluate_task(S.STEPS_IN_PROCESS, FAILED, "wait") == list(paths.TASK_BLOCK[1:])


@st.composite
def step_counts(draw: st.DrawFn) -> StepCounts:
    numbers = st.integers(0, 3)
    done, error, cancelled, active, retry, held, pending = (draw(numbers) for _ in range(7))
    total = done + error + cancelled + active + retry + held + pending
    now = draw(st.integers(0, active))
    return StepCounts(total, done, error, cancelled, active, retry, held, now)


@given(st.sampled_from(OPEN), step_counts(), st.sampled_from(["give_up", "wait"]))
def test_every_evaluation_is_legal_and_settles(state: TaskState, counts: StepCounts, on_blocked) -> None:
    way = evaluate_task(state, counts, on_blocked)
    assert TASK.allows([state, *way])
    assert not TERMINAL.intersection(way[:-1])
    end = way[-1] if way else state
    assert (end == S.COMPLETE) == (counts.done == counts.total)
    settled = replace(counts, enqueued_now=0)
    if not counts.enqueued_now:
        assert evaluate_task(end, settled, on_blocked) == []


@given(st.sampled_from(OPEN), step_counts())
def test_nothing_is_given_up_while_something_can_move(state: TaskState, counts: StepCounts) -> None:
    way = evaluate_task(state, counts)
    if counts.active or counts.retry or counts.ready_held:
        assert not {S.ERROR, S.BLOCKED_BY_FAILURES}.intersection(way)
    if counts.enqueued_now and counts.done < counts.total:
        assert [state, *way][-2:] == [S.ENQUEUING_STEPS, S.STEPS_IN_PROCESS]


@pytest.mark.parametrize(
    ("counts", "status", "action", "health"),
    [
        (StepCounts(4, done=2, error=1), "blocked_by_failures", "handle_failures", "blocked"),
        (StepCounts(4, error=1, ready_held=1, active=1), "blocked_by_failures", "handle_failures", "blocked"),
        (StepCounts(4, ready_held=1, active=1), "has_ready_steps", "execute_ready_steps", "healthy"),
        (StepCounts(4, done=1, active=1, retry=1), "processing", "wait_for_completion", "recovering"),
        (StepCounts(4, done=4), "all_complete", "finalize_task", "healthy"),
        (StepCounts(4, done=3, retry=1), "waiting_for_dependencies", "wait_for_dependencies", "recovering"),
        (StepCounts(0), "all_complete", "finalize_task", "healthy"),
    ],
)
def test_the_execution_context_reads_blocked_before_ready(
    counts: StepCounts, status: str, action: str, health: str
) -> None:
    assert execution_status(counts) == status
    assert recommended_action(counts) == action
    assert health_status(counts) == health


def test_the_completion_percentage_counts_done_steps() -> None:
    assert completion_percentage(StepCounts(4, done=2, error=1)) == 50.0
    assert completion_percentage(StepCounts(0)) == 100.0
