"""`tasker top`: the fleet, refreshed on a terminal."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from tasker.cli.connection import FORMAT, plain
from tasker.cli.options import NumberRange
from tasker.cli.render.values import clock_time, echo, middle_cut, screen_width, table
from tasker.cli.target import FleetTarget, fleet_options, run_on_fleet
from tasker.services.wording import counted, duration, one_line

if TYPE_CHECKING:
    from tasker.cli.remote.fleet import Fleet
    from tasker.services.fleet.overview import Overview, Process


@click.command()
@click.option(
    "--interval",
    type=NumberRange(0.2, 3600),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="Refresh interval.",
)
@click.option("--once", is_flag=True, help="Print once and exit; the default if the output is not a terminal.")
@FORMAT
@fleet_options
def top(interval: float, once: bool, form: str, place: FleetTarget) -> None:
    """Show queues, workers, open circuit breakers and the slowest templates, until Ctrl-C.

    Queues: waiting steps, steps that do not start because their queue is full or paused, and steps that leave per
    second. Templates: tasks of the last hour, from submission to the end. With --format json each line is one object.

    \b
    Examples:
      tasker top
      tasker top --once --format json
    """
    run_on_fleet(place, lambda app: _follow(app, interval, once, form))


async def _follow(app: Fleet, interval: float, once: bool, form: str) -> None:
    import sys

    if form == "text" and not once and sys.stdout.isatty():
        await _live(app, interval)
        return

    before = None
    while True:
        overview = await app.fleet.overview()
        if form == "json":
            echo(json.dumps(overview.to_dict(), default=plain, ensure_ascii=False))
        else:
            echo(overview_text(overview, before, screen_width(), None))
        if once or form == "text":
            return
        before = overview
        await asyncio.sleep(interval)


async def _live(app: Fleet, interval: float) -> None:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    from tasker.cli.live.showing import AWAY, no_answer

    console = Console(highlight=False)
    before = None
    with Live(console=console, screen=True, auto_refresh=False) as screen:
        while True:
            try:
                overview = await app.fleet.overview()
                text = overview_text(overview, before, console.width, console.height)
                before = overview
            except AWAY as error:
                text = f"{text if before else ''}\n{no_answer(error)}"
            screen.update(Text.from_ansi(text, no_wrap=True, overflow="ellipsis"), refresh=True)
            await asyncio.sleep(interval)


STATES = {"live": "green", "draining": "yellow", "lost": "red"}
SECTIONS = 5
OTHER_LINES = 16
"""Lines of the screen that are not rows: the summary, titles, headings, notes."""

LONGEST = 28
BAR = 10

Rows = list[tuple[str, ...]]


def overview_text(overview: Overview, before: Overview | None, width: int | None, height: int | None) -> str:
    """Render the fleet in at most `height` lines, if set; rates are computed from the earlier overview `before`.

    If space is short each table shows only its first rows.
    """
    rows = 1000 if height is None else max(3, (height - OTHER_LINES) // SECTIONS)
    return "\n".join(
        [
            _summary(overview),
            *_queues(overview, before, rows),
            *_processes(overview, rows, width),
            *_rest(overview, rows),
        ]
    )


def _summary(overview: Overview) -> str:
    live = sum(process.state == "live" for process in overview.processes)
    parts = [
        counted(overview.open, "open task"),
        f"{live} {'process' if live == 1 else 'processes'} running",
        *([counted(overview.pauses, "pause")] if overview.pauses else []),
        *([counted(overview.dead_letters, "dead letter")] if overview.dead_letters else []),
    ]
    lately = (
        f"in the last minute {overview.submitted:,} submitted, {counted(overview.failed_attempts, 'failed attempt')}"
    )
    return f"{click.style(clock_time(overview.at)[:8], bold=True)}  {' · '.join(parts)}\n          {lately}"


def _queues(overview: Overview, before: Overview | None, most: int) -> Iterator[str]:
    rates = overview.taken_per_second(before)
    rows: Rows = [
        (
            middle_cut(queue.namespace, LONGEST),
            _loud(queue.enqueued, queue.processes == 0),
            _loud(queue.held, True),
            _loud(queue.paused, True),
            f"{rates[queue.namespace]:.1f}" if queue.namespace in rates else "",
            str(queue.processes) if queue.processes else click.style("0", fg="red" if queue.enqueued else None),
        )
        for queue in overview.queues
    ]
    yield from _section(("queue", "waiting", "held", "paused", "taken/s", "workers"), rows, most, "no namespaces yet")


def _processes(overview: Overview, most: int, width: int | None) -> Iterator[str]:
    name = LONGEST if width is None or width > 90 else 12
    rows: Rows = [
        (
            middle_cut(process.name, name),
            process.kind,
            f"{process.host} {process.pid}",
            click.style(process.state, fg=STATES[process.state]),
            _load(process),
            f"{duration(process.beat_age_ms)} ago",
            middle_cut(", ".join(process.namespaces), LONGEST),
        )
        for process in overview.processes
    ]
    headings = ("process", "kind", "host, pid", "state", "in flight", "last heartbeat", "serves")
    yield from _section(headings, rows, most, "no processes are running; start one with: tasker worker")


def _rest(overview: Overview, most: int) -> Iterator[str]:
    running: Rows = [
        (
            progress.task[:13],
            middle_cut(f"{progress.template} {progress.step}", LONGEST + 8),
            "" if progress.percent is None else f"{progress.percent:.0f} %",
            "" if progress.eta_seconds is None else duration(1000 * progress.eta_seconds),
            middle_cut(one_line(progress.message or ""), LONGEST),
        )
        for progress in overview.running
    ]
    yield from _section(("task", "running step", "done", "left", "says"), running, most, "")
    breakers: Rows = [
        (breaker.breaker, str(breaker.steps), clock_time(breaker.until)[:8]) for breaker in overview.breakers
    ]
    yield from _section(("open breaker", "deferred steps", "until"), breakers, most, "")
    templates: Rows = [
        (
            middle_cut(f"{stats.namespace}/{stats.template}", 36),
            str(stats.tasks),
            str(stats.running),
            _loud(stats.failed, True),
            duration(stats.mean_ms),
            duration(stats.p95_ms),
        )
        for stats in overview.templates
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


def _load(process: Process) -> str:
    if process.kind != "worker":
        return ""
    full = min(BAR, -(-BAR * process.in_hand // process.slots)) if process.slots else 0
    return f"{'█' * full}{'░' * (BAR - full)} {process.in_hand}/{process.slots}"


def _loud(number: int, alarming: bool) -> str:
    return click.style(f"{number:,}", fg="yellow") if number and alarming else f"{number:,}"
