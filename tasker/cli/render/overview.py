"""Text output of the fleet's state: a summary line and several tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from tasker.cli.render.table import table
from tasker.cli.render.values import clock_time, counted, duration, middle_cut, one_line

if TYPE_CHECKING:
    from tasker.services.fleet.overview import Overview, Process

STATES = {"live": "green", "draining": "yellow", "lost": "red"}
SECTIONS = 5
OTHER_LINES = 16
"""Lines of the screen that are not rows: the summary, titles, headings, notes."""

LONGEST = 28
BAR = 10

Rows = list[tuple[str, ...]]


def overview_text(found: Overview, before: Overview | None, width: int | None, height: int | None) -> str:
    """Render the fleet in at most `height` lines, if set; rates are computed from the earlier overview `before`.

    If space is short each table shows only its first rows.
    """
    rows = 1000 if height is None else max(3, (height - OTHER_LINES) // SECTIONS)
    return "\n".join(
        [_summary(found), *_queues(found, before, rows), *_processes(found, rows, width), *_rest(found, rows)]
    )


def _summary(found: Overview) -> str:
    live = sum(each.state == "live" for each in found.processes)
    parts = [
        counted(found.open, "open task"),
        f"{live} {'process' if live == 1 else 'processes'} running",
        *([counted(found.pauses, "pause")] if found.pauses else []),
        *([counted(found.dead_letters, "dead letter")] if found.dead_letters else []),
    ]
    lately = f"in the last minute {found.submitted:,} submitted, {counted(found.failed_attempts, 'failed attempt')}"
    return f"{click.style(clock_time(found.at)[:8], bold=True)}  {' · '.join(parts)}\n          {lately}"


def _queues(found: Overview, before: Overview | None, most: int) -> Iterator[str]:
    rates = found.taken_per_second(before)
    rows: Rows = [
        (
            middle_cut(each.namespace, LONGEST),
            _loud(each.enqueued, each.processes == 0),
            _loud(each.held, True),
            _loud(each.paused, True),
            f"{rates[each.namespace]:.1f}" if each.namespace in rates else "",
            str(each.processes) if each.processes else click.style("0", fg="red" if each.enqueued else None),
        )
        for each in found.queues
    ]
    yield from _section(("queue", "waiting", "held", "paused", "taken/s", "workers"), rows, most, "no namespaces yet")


def _processes(found: Overview, most: int, width: int | None) -> Iterator[str]:
    name = LONGEST if width is None or width > 90 else 12
    rows: Rows = [
        (
            middle_cut(each.name, name),
            each.kind,
            f"{each.host} {each.pid}",
            click.style(each.state, fg=STATES[each.state]),
            _load(each),
            f"{duration(each.beat_age_ms)} ago",
            middle_cut(", ".join(each.namespaces), LONGEST),
        )
        for each in found.processes
    ]
    headings = ("process", "kind", "host, pid", "state", "in flight", "last heartbeat", "serves")
    yield from _section(headings, rows, most, "no processes are running; start one with: tasker worker")


def _rest(found: Overview, most: int) -> Iterator[str]:
    running: Rows = [
        (
            each.task[:13],
            middle_cut(f"{each.template} {each.step}", LONGEST + 8),
            "" if each.percent is None else f"{each.percent:.0f} %",
            "" if each.eta_seconds is None else duration(1000 * each.eta_seconds),
            middle_cut(one_line(each.message or ""), LONGEST),
        )
        for each in found.running
    ]
    yield from _section(("task", "running step", "done", "left", "says"), running, most, "")
    breakers: Rows = [(each.breaker, str(each.steps), clock_time(each.until)[:8]) for each in found.breakers]
    yield from _section(("open breaker", "deferred steps", "until"), breakers, most, "")
    templates: Rows = [
        (
            middle_cut(f"{each.namespace}/{each.template}", 36),
            str(each.tasks),
            str(each.running),
            _loud(each.failed, True),
            duration(each.mean_ms),
            duration(each.p95_ms),
        )
        for each in found.templates
    ]
    yield from _section(("slowest template", "tasks", "running", "failed", "mean", "p95"), templates, most, "")


def _section(headings: Sequence[str], rows: Rows, most: int, nothing: str) -> Iterator[str]:
    """Yield a table after an empty line, cut to `most` rows; without rows the text `nothing`."""
    if rows:
        yield f"\n{table(headings, rows[:most])}"
    elif nothing:
        yield f"\n{click.style(nothing, dim=True)}"
    if len(rows) > most:
        yield click.style(f"and {len(rows) - most} more", dim=True)


def _load(each: Process) -> str:
    if each.kind != "worker":
        return ""
    full = min(BAR, -(-BAR * each.in_hand // each.slots)) if each.slots else 0
    return f"{'█' * full}{'░' * (BAR - full)} {each.in_hand}/{each.slots}"


def _loud(number: int, alarming: bool) -> str:
    return click.style(f"{number:,}", fg="yellow") if number and alarming else f"{number:,}"
