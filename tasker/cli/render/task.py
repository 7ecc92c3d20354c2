"""Text output of a task with its steps, and of its history."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from tasker.cli.render.outcome import failures_text, headline, results_text
from tasker.cli.render.steps import steps_text
from tasker.cli.render.table import table
from tasker.cli.render.values import (
    clock_time,
    date_time,
    duration,
    held_by_pause,
    names_text,
    nobody_serves,
    one_line,
    pretty_json,
    state_text,
)
from tasker.services.folding import folded_names

if TYPE_CHECKING:
    from tasker.services.listings import TransitionDetail
    from tasker.services.reports import TaskReport


def report_text(report: TaskReport, *, traceback: bool = False, every: bool = False, width: int | None = None) -> str:
    """Render a task, finished or not; with `traceback` also the traceback of each step's last failure.

    Instances of a batch worker are folded unless `every`; rows are shortened to `width` columns.
    """
    steps = steps_text(list(report.steps.values()), every=every, width=width)
    waiting = [*_paused(report), *_unserved(report)]
    failed = [step for step in report.steps.values() if step.error is not None]
    failures = failures_text(report.task_uuid, failed, traceback=traceback, every=every, width=width)
    return "\n".join([*_facts(report), "", steps, *waiting, *failures, *_results(report, every)])


def report_object(report: TaskReport) -> dict[str, Any]:
    """Return the object that `tasker run --json` prints, with more fields about the task."""
    steps = [
        step.to_dict() | {"unserved": step.unserved, "paused": step.paused, "begins_at": step.begins_at}
        for step in report.steps.values()
    ]
    return report.to_dict() | {
        "steps": steps,
        "created_at": report.created_at, "completed_at": report.completed_at, "priority": report.priority,
        "initiator": report.initiator, "correlation_id": report.correlation_id, "tags": list(report.tags),
        "cancel_reason": report.cancel_reason, "context": report.context,
        "run_at": report.run_at, "expires_at": report.expires_at, "waits_until": report.waits_until,
    }  # fmt: skip


def history_text(rows: Sequence[TransitionDetail]) -> str:
    """Render one line per transition, in order, with the time since the previous line."""
    lines = []
    for earlier, row in zip([None, *rows], rows, strict=False):
        delta = (row.at - earlier.at).total_seconds() * 1000 if earlier else None
        since = f"+{duration(delta)}" if delta else ""
        states = (row.from_state or "", state_text(row.to_state))
        subject = row.step or click.style("task", bold=True)
        lines.append((clock_time(row.at), since, subject, *states, _attempt(row), _took(row), _remark(row)))
    return table(("time", "since", "step", "from", "to", "attempt", "took", "remark"), lines)


def _facts(report: TaskReport) -> Iterator[str]:
    yield f"task      {report.task_uuid}"
    yield f"template  {report.namespace}/{report.template}:{report.version}"
    yield f"status    {headline(report)}"
    yield f"created   {date_time(report.created_at)} by {report.initiator}"
    if report.run_at or report.waits_until or report.expires_at:
        begins = [f"to begin at {date_time(report.run_at)}"] if report.run_at else []
        waits = [f"waits until {date_time(report.waits_until)}"] if report.waits_until else []
        expires = [f"cancelled at {date_time(report.expires_at)} unless begun"] if report.expires_at else []
        yield f"time      {', '.join(begins + waits + expires)}"
    yield f"input     {pretty_json(report.context, indent=10).lstrip()}"


def _paused(report: TaskReport) -> Iterator[str]:
    waiting = [(step.name, held_by_pause(step.paused)) for step in report.steps.values() if step.paused]
    yield from _waiting(waiting)
    if waiting:
        yield "Hint: to end a pause: tasker resume; what is paused: tasker pause list"


def _unserved(report: TaskReport) -> Iterator[str]:
    unserved = [step for step in report.steps.values() if step.unserved]
    waiting = [(step.name, nobody_serves(step.handler, report.namespace)) for step in unserved]
    yield from _waiting(waiting)
    if waiting:
        yield f"Hint: start a worker with the handler: tasker worker --namespace {report.namespace} --handlers MODULE"
        yield "      to list workers and their handlers: tasker worker list --callables"


def _results(report: TaskReport, every: bool) -> Iterator[str]:
    if report.results:
        yield click.style("\nresults", bold=True)
        yield from results_text(report, report.results, every=every)


def _waiting(waiting: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield a line for each reason, with the steps that wait for it."""
    for reason in dict.fromkeys(reason for _, reason in waiting):
        names = [name for name, why in waiting if why == reason]
        verb = "waits" if len(names) == 1 else "wait"
        yield click.style(f"\n{names_text(folded_names(names))} {verb}: {reason}", fg="yellow")


def _attempt(row: TransitionDetail) -> str:
    """Return the number of the transition's attempt; '' for transitions before the attempt starts."""
    return "" if row.to_state in ("pending", "enqueued") else str(row.attempt or "")


def _took(row: TransitionDetail) -> str:
    return duration(row.execution_time_ms) if row.to_state != "in_progress" else ""


def _remark(row: TransitionDetail) -> str:
    """Render the worker and the metadata of a transition, such as actor and reason."""
    notes = {key: value for key, value in (row.metadata or {}).items() if value not in (None, "", {}, [])}
    worker = [f"worker {row.worker[-8:]}"] if row.worker and row.to_state == "in_progress" else []
    return one_line(", ".join([*worker, *(f"{key}: {value}" for key, value in notes.items())]))
