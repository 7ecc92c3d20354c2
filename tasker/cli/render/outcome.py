"""End of a task as text: its outcome, the reasons for waiting, and the next commands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from shlex import quote
from textwrap import indent
from typing import TYPE_CHECKING, Any

import click

from tasker.cli.render.values import COLOURS, clock_time, date_time, names_text, pretty_json, state_text, wrapped
from tasker.engine.states.step import SATISFYING
from tasker.errors.tracebacks import exception_of, traceback_of
from tasker.services.wording import counted, duration, folded, folded_names, one_line, span

if TYPE_CHECKING:
    from tasker.views.explanation import Explained, Explanation
    from tasker.views.tasks import StepReport, TaskReport

FAILURES_SHOWN = 5
UNDONE = {
    "compensating": "its effects are being undone",
    "compensated": "its effects are undone",
    "compensation_failed": "not all of its effects could be undone",
}
"""Outcomes of compensations in words."""
NOT_RUN = frozenset({"pending", "enqueued", "cancelled"})


def outcome_text(report: TaskReport, width: int | None = None) -> str:
    """Render the outcome of a finished task."""
    results = results_text(report, report.final_results) if report.succeeded else ()
    failures = failures_text(report.task_uuid, report.failed_steps, width=width)
    return "\n".join([headline(report), *_went_on(report), *results, *failures, *_left_out(report)])


def results_text(report: TaskReport, results: Mapping[str, Any], *, every: bool = False) -> Iterator[str]:
    """Yield each result below the name of its step; results of batch instances are only counted unless `every`."""
    groups = folded([report.steps[name] for name in results])
    for group in ([report.steps[name]] for name in results) if every else groups:
        names = [step.name for step in group]
        if len(group) > 1:
            yield f"{click.style(f'{span(names)}:', bold=True)} {len(group)} results, shown by task show --all"
            continue
        yield click.style(f"{names[0]}:", bold=True)
        yield pretty_json(results[names[0]], indent=2)


def failures_text(
    task_uuid: str,
    failed: Sequence[StepReport],
    *,
    traceback: bool = False,
    every: bool = False,
    width: int | None = None,
) -> Iterator[str]:
    """Yield the failures of the steps; only the first few of many, unless `every` is set."""
    visible = failed if every else failed[:FAILURES_SHOWN]
    for step in visible:
        yield f"\n{failure_text(step, width)}"
        if traceback:
            yield traceback_text(step)
    if left := [step.name for step in failed[len(visible) :]]:
        yield f"\nand {counted(len(left), 'step')} more: {names_text(folded_names(left))}"
        yield f"Hint: to see all of them: tasker task show {task_uuid} --all"


def headline(report: TaskReport) -> str:
    """Render state, steps and time on one line."""
    done = sum(step.state in SATISFYING for step in report.steps.values())
    time = f" in {duration(report.duration_ms)}" if report.duration_ms is not None else ""
    text = f"{state_text(report.status)}{time}, {done} of {counted(len(report.steps), 'step')} complete"
    if report.outcome in UNDONE:
        text += f", {UNDONE[report.outcome]}"
    return f"{text}: {report.cancel_reason}" if report.cancel_reason else text


def failure_text(step: StepReport, width: int | None = None) -> str:
    """Render a failed step: its error, its handler, and every attempt; lines are wrapped at `width`."""
    return "\n".join(_failure(step, width))


def traceback_text(step: StepReport) -> str:
    """Render the traceback of a step's last failure, as far as it was stored."""
    text = traceback_of(_metadata(step))
    return indent(text.rstrip(), "  ") if text else "  no traceback: the handler raised no exception"


def _failure(step: StepReport, width: int | None) -> Iterator[str]:
    error = step.error or {}
    code = f" [{error['code']}]" if error.get("code") else ""
    yield f"{_tries(step)} (handler {step.handler})"
    yield wrapped(f"{error.get('type')}{code}: {error.get('message')}", 2, width)
    if raised := exception_of(_metadata(step)):
        yield f"  raised: {raised}"
    if step.failures:
        yield "  attempts:"
        for number, item in enumerate(step.failures, 1):
            yield from _attempt(number, item, width, str(error.get("message")))


def _tries(step: StepReport) -> str:
    """Render how often a step has failed, and which attempt runs or waits; that one has not failed."""
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
    return (step.failures[-1].get("metadata") if step.failures else None) or {}


def _attempt(number: int, failure: Mapping[str, Any], width: int | None, printed: str) -> Iterator[str]:
    """Yield the line of an attempt: number, time, worker, error, and decision.

    If it is too long the error moves to its own line, and is omitted if it equals `printed`, which is printed already.
    """
    worker = f"  worker {_short(failure['worker'])}" if failure.get("worker") else ""
    retry = f"  (again after {duration(failure['retry_in_ms'])})" if failure.get("retry_in_ms") is not None else ""
    final = f"  ({failure['final']})" if failure.get("final") else ""
    what = f"{failure.get('error_type')}: {one_line(str(failure.get('message')))}"
    begin = f"    {failure.get('attempt', number)}  {clock_time(failure.get('at'))}{worker}"
    line = f"{begin}  {what}{retry}{final}"
    if width is None or len(line) <= width:
        yield line
        return
    yield f"{begin}{retry}{final}"
    if str(failure.get("message")) != printed:
        yield wrapped(what, 7, width)


def _went_on(report: TaskReport) -> Iterator[str]:
    if missing := [step.name for step in report.missing_steps]:
        outcome = f"{report.outcome}, " if report.outcome else ""
        yield f"{outcome}without {names_text(folded_names(missing))}; why: tasker task show {report.task_uuid}"


def _left_out(report: TaskReport) -> Iterator[str]:
    names = [step.name for step in report.steps.values() if step.state in NOT_RUN]
    if names and not report.succeeded:
        yield ""
        yield f"not run: {names_text(folded_names(names))}"


def _short(worker: str) -> str:
    """Return the end of a worker's identifier: workers can share its beginning, a time."""
    return worker[-8:]


def resume_command(task_uuid: str, database: str, target: str | None = None, handlers: Sequence[str] = ()) -> str:
    """Return the command that resumes a task here. `database` holds the options that name the database."""
    sources = "".join(f" --handlers {quote(handler)}" for handler in handlers)
    folder = f" {quote(target)}" if target else ""
    return f"tasker run{folder} --resume {task_uuid}{sources}{database}"


def watch_command(task_uuid: str, database: str) -> str:
    """Return the command that watches a task which other processes run."""
    return f"tasker task watch {task_uuid}{database}"


def going_on(task_uuid: str, arguments: str, *, here: bool) -> list[str]:
    """Return lines with the commands for a running task: watch it, and with `here` also resume it in this shell."""
    watch_lines = [f"  {watch_command(task_uuid, arguments)}"]
    if not here:
        return ["to watch it (workers run it):", *watch_lines]
    return [
        "to watch it (workers run it), or to run it here:",
        *watch_lines,
        f"  {resume_command(task_uuid, arguments)}",
    ]


def next_text(report: TaskReport, database: str, go_on: str) -> str:
    """Return advice for a task that did not succeed, '' for one that did; `go_on` is the command after a repair."""
    return "\n".join(_next(report, database, go_on))


def _next(report: TaskReport, database: str, go_on: str) -> Iterator[str]:
    if report.status == "cancelled":
        yield "\nTo see who cancelled it, when and why:"
        yield f"  tasker task history {report.task_uuid}{database}"
    elif not report.succeeded and report.finished:
        yield "\nTo see all details:"
        yield f"  tasker task show {report.task_uuid}{_traceback(report)}{database}"
        if report.outcome == "compensated":
            yield "To run it again, as a new task:"
            yield f"  tasker task rerun {report.task_uuid}{database}"
            return
        yield "To retry the failed steps once the cause is fixed, and resume:"
        yield f"  {_again(report, database)}"
        yield f"  {go_on}"


def _again(report: TaskReport, database: str) -> str:
    failed = report.failed_steps
    if len(failed) == 1 and report.outcome is None:
        return f"tasker task step reset {report.task_uuid} {quote(failed[0].name)}{database}"
    return f"tasker task retry {report.task_uuid}{database}"


def _traceback(report: TaskReport) -> str:
    raised = any(
        traceback_of(failure.get("metadata") or {}) for s in report.failed_steps for failure in s.failures[-1:]
    )
    return " --traceback" if raised else ""


MARKS = {True: ("!", "yellow"), False: ("·", "cyan")}


def explanation_text(explanation: Explanation, width: int | None, database: str = "") -> str:
    """Render the task's status, and for each reason its steps, the explanation and the remedy."""
    status = click.style(explanation.status, fg=COLOURS.get(explanation.status), bold=True)
    lines = [
        f"{explanation.namespace}/{explanation.template}  {explanation.task_uuid}",
        f"{status}, as of {date_time(explanation.at)}",
    ]
    for reason in explanation.reasons:
        lines += ["", *_paragraph(reason, width, database)]
    if explanation.more:
        lines += ["", f"and {explanation.more} more reasons; --step NAME shows the reasons for one step"]
    if not explanation.reasons:
        lines += ["", "no steps left to run"]
    return "\n".join(lines)


def _paragraph(reason: Explained, width: int | None, database: str) -> Iterator[str]:
    mark, colour = MARKS[reason.needs_somebody]
    names = folded_names(reason.steps) if reason.steps else ["the task itself"]
    more = f" and {reason.count - len(reason.steps):,} more" if reason.count > len(reason.steps) else ""
    yield click.style(f"{mark} {', '.join(names)}{more}", fg=colour, bold=True)
    yield wrapped(reason.sentence(), 2, width)
    yield click.style(_remedy(reason.remedy(database), width), dim=True)


def _remedy(text: str, width: int | None) -> str:
    """Render the remedy; a command at its end gets its own line, so that it can be copied."""
    words, separator, command = text.partition(": tasker ")
    if not separator:
        return wrapped(f"→ {text}", 2, width)
    return f"{wrapped(f'→ {words}:', 2, width)}\n    tasker {command}"
