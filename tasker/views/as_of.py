"""A task as it was at an earlier time, from its report and its history."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from datetime import datetime

from tasker.engine.states.step import SATISFYING
from tasker.engine.states.task import StepCounts, execution_status
from tasker.errors import UsageError
from tasker.views.task_lists import TransitionDetail
from tasker.views.tasks import StepReport, TaskReport

WAITS, ENDED_WRONG = ("pending", "waiting_for_retry"), ("error", "cancelled")


def report_at(report: TaskReport, history: Iterable[TransitionDetail], at: datetime) -> TaskReport:
    """Return the task as it was at that time: the steps that existed, their states, attempts, failures and results.

    What nobody records is left out: pauses, missing workers, and what a step waited for. Raises `UsageError` for a
    time before the task was created.
    """
    last: dict[str | None, TransitionDetail] = {}
    changed_later: set[str | None] = set()
    for row in history:
        if row.step in changed_later or row.at > at:  # rows of one subject are in the order of its changes
            changed_later.add(row.step)
        else:
            last[row.step] = row
    if None not in last:
        created = report.created_at.isoformat(timespec="seconds")
        raise UsageError(f"the task did not exist at {at.isoformat(timespec='seconds')}", hint=f"created at {created}")
    steps = {
        name: _step(step, last[name], at, name in changed_later, last)
        for name, step in report.steps.items()
        if name in last
    }
    ended = None not in changed_later
    return replace(
        report,
        status=last[None].to_state,
        execution_status=str(execution_status(_counts(steps.values()))),
        completed_at=report.completed_at if ended else None,
        outcome=report.outcome if ended else None,
        cancel_reason=report.cancel_reason if ended else None,
        waits_until=None,
        waiting_for=(),
        expires_at=None,
        steps=steps,
    )


def _step(
    step: StepReport,
    row: TransitionDetail,
    at: datetime,
    changed_later: bool,
    existing: Collection[str | None],
) -> StepReport:
    is_done = row.to_state in SATISFYING
    return replace(
        step,
        state=row.to_state,
        attempts=row.attempt or 0,
        depends_on=tuple(name for name in step.depends_on if name in existing),
        result=step.result if is_done else None,
        failures=tuple(each for each in step.failures if datetime.fromisoformat(each["at"]) <= at),
        duration_ms=step.duration_ms if is_done else None,
        items_processed=None if changed_later else step.items_processed,
        settled=None if changed_later else step.settled,
        unserved=False,
        paused=None,
        begins_at=None,
    )


def _counts(steps: Iterable[StepReport]) -> StepCounts:
    states = [(step.state, step.settled) for step in steps]
    return StepCounts(*_numbers(states))


def _numbers(states: list[tuple[str, str | None]]) -> Iterator[int]:
    yield len(states)
    yield sum(state in SATISFYING or settled is not None for state, settled in states)
    yield sum(state == "error" and settled is None for state, settled in states)
    yield sum(state == "cancelled" and settled is None for state, settled in states)
    yield sum(state not in SATISFYING and state not in (*WAITS, *ENDED_WRONG) for state, _ in states)
    yield sum(state == "waiting_for_retry" for state, _ in states)
    yield 0
