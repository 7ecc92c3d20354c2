"""`tasker task logs`: log lines and output of a task's handlers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from tasker.cli.connection import FORMAT, plain
from tasker.cli.place.options import fleet_options, run_on_fleet
from tasker.cli.place.places import FleetTarget
from tasker.cli.render.values import clock_time, echo
from tasker.cli.task.covering import SHOW_SENSITIVE, covered
from tasker.cli.task.lookup import find_task
from tasker.cli.task.since import since

if TYPE_CHECKING:
    from tasker.cli.place.fleet import Fleet
    from tasker.services.step_logs import StepLogLine

LEVELS = ("debug", "info", "warning", "error")
COLOURS = {"warning": "yellow", "error": "red", "debug": "bright_black"}
PAGE = 1000
LATE = timedelta(seconds=30)
"""Maximum delay with which a line may be stored after later ones; lines already shown are skipped."""
LOOK_SECONDS = 1.0


@click.command()
@click.argument("task_uuid", metavar="TASK_UUID")
@click.option("--follow", "-f", is_flag=True, help="Follow new lines until the task has ended.")
@click.option("--step", metavar="NAME", help="Filter by step; a batch worker means all its instances.")
@click.option("--attempt", type=click.IntRange(1), metavar="N", help="Filter by attempt.")
@click.option("--level", type=click.Choice(LEVELS), default="debug", show_default=True, help="Minimum level.")
@click.option("--since", type=since, metavar="15m|2h|DATE", help="Only lines written since then.")
@SHOW_SENSITIVE
@FORMAT
@fleet_options
def logs(task_uuid: str, follow: bool, show_sensitive: bool, form: str, place: FleetTarget, **which: Any) -> None:
    """Show the log lines and the output of a task's handlers, in order of time.

    Lines are stored with their step for as long as the task, from the level in `worker.execution.keep_logs` on. A line
    is stored about a second after it was written. With --format json each line is an object.

    \b
    Examples:
      tasker task logs 0199c1f4-8a52
      tasker task logs 0199c1f4-8a52 --step charge --level warning
      tasker task logs 0199c1f4-8a52 -f
    """

    async def show(app: Fleet) -> None:
        task = await find_task(app.tasks, task_uuid)
        shown = 0
        async for lines in _lines(app, task, follow, which):
            for line in await covered(app, task, [plain_line(each) for each in lines], show_sensitive):
                echo(json.dumps(line, default=plain, ensure_ascii=False) if form == "json" else line_text(line))
                shown += 1
        if not shown and form == "text":
            echo("no stored log lines match")

    run_on_fleet(place, show)


async def _lines(app: Fleet, task: str, follow: bool, which: dict[str, Any]) -> AsyncIterator[Sequence[StepLogLine]]:
    """Yield the stored lines, page by page; with `follow` also new lines until the task has ended."""
    seen: set[str] = set()
    ended = not follow
    while True:
        async for page in _pages(app, task, which):
            yield [line for line in page if line.place not in seen]
            if follow:
                seen.update(line.place for line in page)
                which = {**which, "since": _latest(page) - LATE}
        if ended:
            return
        _, ended = await app.tasks.state(task)
        # The last lines are stored after the task's end.
        await asyncio.sleep(LOOK_SECONDS if not ended else 2 * LOOK_SECONDS)


async def _pages(app: Fleet, task: str, which: dict[str, Any]) -> AsyncIterator[Sequence[StepLogLine]]:
    after: str | None = None
    while page := await app.tasks.logs(task, **which, after=after, limit=PAGE):
        yield page
        if len(page) < PAGE:
            return
        after = page[-1].place


def _latest(page: Sequence[StepLogLine]) -> datetime:
    return page[-1].at


def plain_line(line: StepLogLine) -> dict[str, Any]:
    """Return the line as plain data."""
    from dataclasses import asdict

    return asdict(line)


def line_text(line: dict[str, Any]) -> str:
    """Render time, level, step and attempt, message and fields; further lines of the message below."""
    level = click.style(f"{line['level']:7}", fg=COLOURS.get(line["level"]))
    attempt = f" #{line['attempt']}" if line["attempt"] > 1 else ""
    fields = "".join(f" {key}={value}" for key, value in (line["fields"] or {}).items())
    first, *more = str(line["message"]).split("\n")
    head = f"{clock_time(line['at'])} {level} {click.style(line['step'] + attempt, bold=True)}  {first}"
    return "\n".join((head + click.style(fields, dim=True), *(f"    {each}" for each in more)))
