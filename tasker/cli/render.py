"""How a task ended, for a person: the outcome, the results of the final steps, the failures with every attempt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from textwrap import indent
from typing import TYPE_CHECKING, Any

import click

from tasker.cli.render_values import clock_time, counted, duration, one_line, pretty_json, state_text
from tasker.step_handler.traceback_text import exception_of, traceback_of

if TYPE_CHECKING:
    from tasker.services.reports import StepReport, TaskReport

NOT_RUN = frozenset({"pending", "enqueued", "cancelled"})


def outcome_text(report: TaskReport) -> str:
    """The end of a finished task."""
    return "\n".join([headline(report), *_results(report), *_failures(report), *_left_out(report)])


def headline(report: TaskReport) -> str:
    """State, steps and time on one line."""
    done = sum(step.state in ("complete", "resolved_manually") for step in report.steps.values())
    time = f" in {duration(report.duration_ms)}" if report.duration_ms is not None else ""
    text = f"{state_text(report.status)}{time}, {done} of {counted(len(report.steps), 'step')} complete"
    return f"{text}: {report.cancel_reason}" if report.cancel_reason else text


def failure_text(step: StepReport) -> str:
    """A failed step: its error, its handler, and what became of each attempt."""
    return "\n".join(_failure(step))


def traceback_text(step: StepReport) -> str:
    """The traceback of a step's last failure, as far as it was kept."""
    text = traceback_of(_metadata(step))
    return indent(text.rstrip(), "  ") if text else "  no traceback: the handler raised no exception"


def _results(report: TaskReport) -> Iterator[str]:
    if not report.succeeded:
        return
    for name, result in report.final_results.items():
        yield click.style(f"{name}:", bold=True)
        yield pretty_json(result, indent=2)


def _failures(report: TaskReport) -> Iterator[str]:
    for step in report.failed_steps:
        yield ""
        yield from _failure(step)


def _failure(step: StepReport) -> Iterator[str]:
    error = step.error or {}
    code = f" [{error['code']}]" if error.get("code") else ""
    yield f"{_tries(step)} (handler {step.handler})"
    yield f"  {error.get('type')}{code}: {error.get('message')}"
    if raised := exception_of(_metadata(step)):
        yield f"  raised: {raised}"
    if step.failures:
        yield "  attempts:"
        yield from (f"    {_attempt(number, item)}" for number, item in enumerate(step.failures, 1))


def _tries(step: StepReport) -> str:
    """How often a step has failed and, where it is not over, what comes next: the attempt that runs is no failure."""
    if step.state == "error" or not step.failures:
        tries = f"{counted(step.attempts, 'attempt')} of {step.max_attempts}"
        return click.style(f"{step.name} failed", fg="red", bold=True) + f" after {tries}"
    number = step.failures[-1].get("attempt", len(step.failures))
    name, failed = click.style(step.name, fg="yellow", bold=True), f"attempt {number} of {step.max_attempts} failed"
    if step.state == "in_progress":
        return f"{name}: {failed}; attempt {step.attempts} runs"
    waits = step.state in ("waiting_for_retry", "enqueued")
    return f"{name}: {failed}; attempt {step.attempts + 1} waits" if waits else f"{name}: {failed}"


def _metadata(step: StepReport) -> Mapping[str, Any]:
    """The metadata of the last failure."""
    return (step.failures[-1].get("metadata") if step.failures else None) or {}


def _attempt(number: int, failure: Mapping[str, Any]) -> str:
    """Number, time, worker, what went wrong, and what was decided."""
    worker = f"  worker {_short(failure['worker'])}" if failure.get("worker") else ""
    retry = f"  (again after {duration(failure['retry_in_ms'])})" if failure.get("retry_in_ms") is not None else ""
    final = f"  ({failure['final']})" if failure.get("final") else ""
    what = f"{failure.get('error_type')}: {one_line(str(failure.get('message')))}"
    return f"{failure.get('attempt', number)}  {clock_time(failure.get('at'))}{worker}  {what}{retry}{final}"


def _left_out(report: TaskReport) -> Iterator[str]:
    names = [step.name for step in report.steps.values() if step.state in NOT_RUN]
    if names and not report.succeeded:
        yield ""
        yield f"not run: {', '.join(names[:10])}{f' and {len(names) - 10} more' if len(names) > 10 else ''}"


def _short(worker: str) -> str:
    """The end of a worker's identifier: the beginning is a time that workers share."""
    return worker[-8:]
