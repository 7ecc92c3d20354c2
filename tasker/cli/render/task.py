"""A task, its steps and lists of tasks as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from tasker.cli.render.outcome import failures_text, headline, results_text
from tasker.cli.render.values import (
    COLOURS,
    clock_time,
    date_time,
    held_by_pause,
    middle_cut,
    names_text,
    pretty_json,
    state_text,
    table,
    unserved_text,
    wrapped,
)
from tasker.services.wording import SYMBOLS, URGENCY, countdown, duration, folded, folded_names, one_line, span

if TYPE_CHECKING:
    from tasker.views.task_lists import TaskSummary, TransitionDetail
    from tasker.views.tasks import StepReport, TaskReport

HEADINGS = ("step", "state", "attempts", "took", "depends on")
NOTABLE = ("error", "waiting_for_retry")
NOTABLE_SHOWN = 10
MOST_ROWS = 500
"""Steps, or batch workers with all their instances, that are shown unless every step is wanted."""
SHORTEST = 12
"""Minimum width of a shortened name; the minimum of the dependencies is the width of their heading."""

Cells = tuple[str, ...]


def steps_text(steps: Sequence[StepReport], *, every: bool, width: int | None, now: datetime | None = None) -> str:
    """Render one row per step; instances of a batch worker are folded, with the failed ones below, unless `every`.

    Rows are shortened to `width` columns; None leaves them uncut.
    """
    now = now or datetime.now(UTC)
    groups = [[step] for step in steps] if every else list(folded(steps))
    visible = groups if every else groups[:MOST_ROWS]
    rows = [row for group in visible for row in _rows(group, now)]
    if left := sum(map(len, groups[len(visible) :])):
        rows.append((f"and {left:,} more", "--all shows each step"))
    return table(HEADINGS, [_fitted(row, rows, width) for row in rows])


def _rows(group: Sequence[StepReport], now: datetime) -> Iterator[Cells]:
    if len(group) == 1:
        yield _row(group[0], now)
        return
    yield span([step.name for step in group]), _counts(group)
    notable = [step for step in group if step.state in NOTABLE]
    for step in notable[:NOTABLE_SHOWN]:
        yield (f"  {step.name}", *_row(step, now)[1:4], "")
    if len(notable) > NOTABLE_SHOWN:
        yield f"  and {len(notable) - NOTABLE_SHOWN} more", "--all shows each step"


def _row(step: StepReport, now: datetime) -> Cells:
    attempts = f"{step.attempts}/{step.max_attempts}" if step.attempts else "reused" if step.reused_from else ""
    return step.name, state_text(step.state), attempts, _time(step, now), ", ".join(folded_names(step.depends_on))


def _counts(group: Sequence[StepReport]) -> str:
    """Render `498 complete, 2 error, up to 1.2 s` (the longest duration), in the colour of the most urgent state."""
    states = Counter(step.state for step in group)
    speaker = min(states, key=URGENCY.index)
    counts = ", ".join(f"{states[state]} {state}" for state in reversed(URGENCY) if states[state])
    text = click.style(f"{SYMBOLS[speaker]} {counts}", fg=COLOURS.get(speaker))
    longest = max((step.duration_ms for step in group if step.duration_ms is not None), default=None)
    return text if longest is None else f"{text}, up to {duration(longest)}"


def _time(step: StepReport, now: datetime) -> str:
    if step.begins_at:
        return f"begins {countdown((step.begins_at - now).total_seconds())}"
    due = due_at(step)
    return f"again {countdown((due - now).total_seconds())}" if due else duration(step.duration_ms)


def due_at(step: StepReport) -> datetime | None:
    """Return the time at which a step that waits for a retry is due, or None."""
    last = step.failures[-1] if step.failures and step.state == "waiting_for_retry" else {}
    if last.get("retry_in_ms") is None or last.get("at") is None:
        return None
    return datetime.fromisoformat(last["at"]) + timedelta(milliseconds=last["retry_in_ms"])


def _fitted(row: Cells, rows: Sequence[Cells], width: int | None) -> Cells:
    """Return the row with its name and dependencies shortened to the space that the other columns leave."""
    whole = [other for other in rows if len(other) == len(HEADINGS)]
    if width is None or not whole:
        return row
    used = sum(max(len(click.unstyle(cells[column])) for cells in [HEADINGS, *whole]) for column in (1, 2, 3)) + 8
    names = max(len(other[0]) for other in rows)
    least = len(HEADINGS[-1])
    name = max(SHORTEST, min(names, width - used - least))
    rest = max(least, width - used - name)
    last = _cut(row[-1], rest if len(row) == len(HEADINGS) else width - name - 2)
    return (middle_cut(row[0], name), *row[1:-1], last)


def _cut(cell: str, width: int) -> str:
    text = click.unstyle(cell)
    return cell if len(text) <= width else f"{text[: width - 1]}…"


def report_text(report: TaskReport, *, traceback: bool = False, every: bool = False, width: int | None = None) -> str:
    """Render a task, finished or not; with `traceback` also the traceback of each step's last failure.

    Instances of a batch worker are folded unless `every`; rows are shortened to `width` columns.
    """
    steps = steps_text(list(report.steps.values()), every=every, width=width)
    waiting = [*_decisions(report), *_paused(report), *_unserved(report)]
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
        "run_at": report.run_at, "expires_at": report.expires_at, "deadline_at": report.deadline_at,
        "waits_until": report.waits_until, "waiting_for": list(report.waiting_for), "tenant": report.tenant,
        "outcome": report.outcome,
        "parent_task_uuid": report.parent_task_uuid, "parent_step_uuid": report.parent_step_uuid,
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
    if missing := [step.name for step in report.missing_steps]:
        yield f"outcome   {report.outcome or 'not ended'}, without {names_text(folded_names(missing))}"
    elif report.outcome:
        yield f"outcome   {report.outcome}"
    yield f"created   {date_time(report.created_at)} by {report.initiator}"
    if report.parent_step_uuid:
        yield f"parent    a step of task {report.parent_task_uuid}"
    if report.tenant:
        yield f"tenant    {report.tenant}"
    if report.run_at or report.waits_until or report.expires_at or report.deadline_at:
        begins = [f"to begin at {date_time(report.run_at)}"] if report.run_at else []
        waits = [f"waits until {date_time(report.waits_until)}"] if report.waits_until else []
        expires = [f"cancelled at {date_time(report.expires_at)} unless begun"] if report.expires_at else []
        ends = [f"deadline {date_time(report.deadline_at)}"] if report.deadline_at else []
        yield f"time      {', '.join(begins + waits + expires + ends)}"
    if report.waiting_for:
        yield f"waits     for {waiting_text(report.waiting_for)}"
    yield f"input     {pretty_json(report.context, indent=10).lstrip()}"


WAITS = {"time": "a time", "event": "an event", "person": "a person", "task": "child tasks"}


def waiting_text(words: Sequence[str]) -> str:
    """Return what steps of a task wait for without a worker."""
    return ", ".join(WAITS.get(word, word) for word in words)


def _decisions(report: TaskReport) -> Iterator[str]:
    """Yield a line for each decision that gave a reason."""
    decisions = [(step.name, step.decision) for step in report.steps.values() if step.decision]
    yield from [""] if decisions else []
    for name, (created, reason) in decisions:
        yield f"{name} created {names_text(created) or 'no steps'}: {one_line(reason)}"


def _paused(report: TaskReport) -> Iterator[str]:
    waiting = [(step.name, held_by_pause(step.paused)) for step in report.steps.values() if step.paused]
    yield from _waiting(waiting)
    if waiting:
        yield "Hint: to end a pause: tasker resume; what is paused: tasker pause list"


def _unserved(report: TaskReport) -> Iterator[str]:
    unserved = [step for step in report.steps.values() if step.unserved]
    waiting = [(step.name, unserved_text(step.handler, report.namespace)) for step in unserved]
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


SHORT_ID = 13
"""Number of leading characters of an identifier that encode the time of its task."""
MIN_TEMPLATE = 12
AGES = {"d": 86_400, "h": 3_600, "m": 60}


def list_text(rows: Sequence[TaskSummary], width: int | None = None, now: datetime | None = None) -> str:
    """Render one line per task, in full if it fits in `width` columns or if `width` is None.

    Otherwise identifiers are shortened (commands accept prefixes), ages replace times, versions are omitted, and the
    reason why a task waits is on a line below it.
    """
    if not rows:
        return "no tasks"
    whole = table(("task", "template", "status", "steps", "created", "time"), [_whole(row) for row in rows])
    if width is None or max(len(line) for line in click.unstyle(whole).splitlines()) <= width:
        return whole
    return "\n".join(_short(rows, width, now or datetime.now(UTC)))


def _whole(row: TaskSummary) -> tuple[str, ...]:
    took = (row.completed_at - row.created_at).total_seconds() * 1000 if row.completed_at else None
    template = f"{_template(row)}:{row.version}"
    status = ", ".join([state_text(row.status), *_remarks(row)])
    return row.task_uuid, template, status, _steps(row), date_time(row.created_at), duration(took)


def _short(rows: Sequence[TaskSummary], width: int, now: datetime) -> Iterator[str]:
    """Yield the lines of a table whose template column gets the space that the other columns leave."""
    ids = short_ids([row.task_uuid for row in rows])
    others = [(state_text(row.status), _steps(row, " ✖{}"), _age(now, row.created_at)) for row in rows]
    headings = ("status", "steps", "age")
    taken = sum(max(len(click.unstyle(cells[n])) for cells in (headings, *others)) + 2 for n in range(len(headings)))
    room = max(MIN_TEMPLATE, width - len(ids[0]) - 2 - taken)
    templates = [middle_cut(_template(row), room) for row in rows]
    cells = [(short, template, *rest) for short, template, rest in zip(ids, templates, others, strict=True)]
    first, *lines = table(("task", "template", *headings), cells).splitlines()
    yield first
    for line, row in zip(lines, rows, strict=True):
        yield line
        yield from (wrapped(remark, 2, width) for remark in _remarks(row))


def short_ids(ids: Sequence[str]) -> list[str]:
    """Return the shortest prefixes that keep the identifiers distinct, but at least `SHORT_ID` characters."""
    whole = max(map(len, ids))
    lengths = (
        length for length in range(SHORT_ID, whole) if len({identifier[:length] for identifier in ids}) == len({*ids})
    )
    length = next(lengths, whole)
    return [identifier[:length] for identifier in ids]


def _template(row: TaskSummary) -> str:
    return f"{row.namespace}/{row.template}"


def _steps(row: TaskSummary, failed: str = ", {} failed") -> str:
    return f"{row.done}/{row.total}" + (failed.format(row.failed) if row.failed else "")


def _age(now: datetime, created: datetime) -> str:
    seconds = max(0, round((now - created).total_seconds()))
    return next((f"{seconds // size} {unit}" for unit, size in AGES.items() if seconds >= 2 * size), f"{seconds} s")


def _remarks(row: TaskSummary) -> list[str]:
    paused = [held_by_pause(row.paused)] if row.paused else []
    until = [f"until {date_time(row.waits_until)}"] if row.waits_until else []
    others = [word for word in row.waiting_for if word != "time"]
    waits = [f"waits for {waiting_text(others)}"] if others else []
    outcome = [row.outcome] if row.outcome else []
    return outcome + waits + until + paused + ([unserved_text(row.unserved)] if row.unserved else [])
