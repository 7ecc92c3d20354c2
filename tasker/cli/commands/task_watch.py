"""`tasker task watch` and `logs`."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from tasker.__main__ import INTERRUPTED
from tasker.cli.connection import FORMAT, plain
from tasker.cli.covering import SHOW_SENSITIVE, seen
from tasker.cli.options import SECONDS
from tasker.cli.render.outcome import next_text, watch_command
from tasker.cli.render.values import clock_time, echo, screen_width
from tasker.cli.run.session import interruption
from tasker.cli.target import FleetTarget, find_task, fleet_options, run_on_fleet

if TYPE_CHECKING:
    from tasker.cli.live.showing import View
    from tasker.cli.remote.fleet import Fleet
    from tasker.template.plan import Plan
    from tasker.views.steps import StepLogLine
    from tasker.views.tasks import TaskReport

SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])")
NEARLY = re.compile(r"-?(\d+(?:\.\d+)?)\s*([smhdw]?)", re.IGNORECASE)
SECONDS_PER_UNIT = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
EXPECTED = "expected 90s, 15m, 2h, 7d or 2w, or a date such as 2026-01-31 or '2026-01-31 18:00'"


def since(text: str) -> datetime:
    """Convert the option's text to a time, relative to now."""
    return moment(text, datetime.now(UTC))


def moment(text: str, now: datetime) -> datetime:
    """Convert the text to a time. Raises `click.BadParameter` if it is invalid or in the future."""
    span = SPAN.fullmatch(text.strip())
    try:
        if span:
            instant = now - timedelta(seconds=float(span[1]) * SECONDS_PER_UNIT[span[2]])
        else:
            instant = datetime.fromisoformat(text.strip())
            instant = instant if instant.tzinfo else instant.astimezone()
    except OverflowError:
        raise click.BadParameter(f"{text} is too far in the past; {EXPECTED}") from None
    except ValueError:
        near = NEARLY.match(text.strip())
        meant = f"; did you mean {near[1]}{(near[2] or 'h').lower()}?" if near and "-" not in text[1:] else ""
        raise click.BadParameter(f"{text!r} is not a duration or a date{meant}\n{EXPECTED}") from None
    if instant >= now:
        raise click.BadParameter(f"{text} is in the future or now; {EXPECTED}")
    return instant


LEVELS = ("debug", "info", "warning", "error")
COLOURS = {"warning": "yellow", "error": "red", "debug": "bright_black"}
PAGE = 1000
LATE = timedelta(seconds=30)
"""Maximum delay with which a line may be stored after later ones; lines already shown are skipped."""
POLL_SECONDS = 1.0


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
        line_count = 0
        async for lines in _lines(seen(app, show_sensitive), task, follow, which):
            for line in map(plain_line, lines):
                echo(json.dumps(line, default=plain, ensure_ascii=False) if form == "json" else line_text(line))
                line_count += 1
        if not line_count and form == "text":
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
        await asyncio.sleep(POLL_SECONDS if not ended else 2 * POLL_SECONDS)


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
    return "\n".join((head + click.style(fields, dim=True), *(f"    {continuation}" for continuation in more)))


ADVICE = "Ctrl-C ends the view; the task continues"


@click.command()
@click.argument("task_uuid", metavar="TASK_UUID")
@click.option("--timeout", type=SECONDS, metavar="SECONDS", help="Stop watching after this time.")
@SHOW_SENSITIVE
@FORMAT
@fleet_options
def watch(task_uuid: str, timeout: float | None, show_sensitive: bool, form: str, place: FleetTarget) -> None:
    """Show the progress of a task until it ends, whichever process runs it; nothing runs in this process.

    On a terminal it is the tree of `tasker run`, elsewhere one line for each change; with --format json each line is an
    object, and the last one is the task with "finished": true. Ctrl-C ends the view; the task continues.

    \b
    Examples:
      tasker task watch 0199c1f4-8a52
      tasker task watch $(tasker task submit shop/checkout --set order=7)

    \b
    Exit codes:
      0    complete
      1    failed, cancelled, or not ended within --timeout
      130  interrupted (Ctrl-C); the task continues
    """
    raise SystemExit(run_on_fleet(place, lambda app: _watch(app, task_uuid, timeout, show_sensitive, form, place)))


async def _watch(
    app: Fleet, named: str, timeout: float | None, show_sensitive: bool, form: str, place: FleetTarget
) -> int:
    from tasker.cli.live.feed import Feed
    from tasker.cli.live.showing import first_of, show_while_waiting

    task, database = await find_task(app.tasks, named), place.arguments()
    plan = await app.pinned_plan(task)
    with interruption() as interrupted:
        interrupted.last_words = f"The task continues. To watch it again: {watch_command(task, database)}"
        if form == "text":
            echo(f"{click.style(plan.name, bold=True)} {plan.version} ({plan.namespace})  task {task}")
        async with show_while_waiting(Feed(seen(app, show_sensitive).tasks, task), _view(form, plan)):
            outcome = await first_of(app.wait(task), interrupted.asked, timeout)
        if not isinstance(outcome, str):
            report = await seen(app, show_sensitive).sensitive_values.redacted(task, outcome)
            return _ended(report, form, database)
    why = "Interrupted" if outcome == "interrupted" else f"Not ended after {timeout:g} s"
    echo(f"{why}; the task continues. To watch it again:\n  {watch_command(task, database)}", to=sys.stderr)
    return INTERRUPTED if outcome == "interrupted" else 1


def _view(form: str, plan: Plan) -> View:
    if form == "json":
        from tasker.cli.live.text import JsonLines

        return JsonLines(echo)
    from tasker.cli.live.showing import view_on

    return view_on(sys.stdout, plan, ADVICE)


def _ended(report: TaskReport, form: str, database: str) -> int:
    from tasker.cli.render.outcome import outcome_text

    if form == "text":
        echo(outcome_text(report, screen_width()))
    if text := next_text(report, database, watch_command(report.task_uuid, database)):
        echo(text, to=sys.stderr if form == "json" else None)
    return 0 if report.succeeded else 1
