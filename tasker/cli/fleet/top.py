"""`tasker top`: live overview of the fleet."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import click

from tasker.cli.connection import FORMAT, plain
from tasker.cli.options import NumberRange
from tasker.cli.place.options import fleet_options, run_on_fleet
from tasker.cli.place.places import FleetTarget
from tasker.cli.render.values import echo, screen_width

if TYPE_CHECKING:
    from tasker.cli.place.fleet import Fleet


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
    from tasker.cli.render.overview import overview_text

    before = None
    while True:
        found = await app.fleet.overview()
        if form == "json":
            echo(json.dumps(found.to_dict(), default=plain, ensure_ascii=False))
        else:
            echo(overview_text(found, before, screen_width(), None))
        if once or form == "text":
            return
        before = found
        await asyncio.sleep(interval)


async def _live(app: Fleet, interval: float) -> None:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    from tasker.cli.live.showing import AWAY, no_answer
    from tasker.cli.render.overview import overview_text

    console = Console(highlight=False)
    before = None
    with Live(console=console, screen=True, auto_refresh=False) as screen:
        while True:
            try:
                found = await app.fleet.overview()
                text = overview_text(found, before, console.width, console.height)
                before = found
            except AWAY as error:
                text = f"{text if before else ''}\n{no_answer(error)}"
            screen.update(Text.from_ansi(text, no_wrap=True, overflow="ellipsis"), refresh=True)
            await asyncio.sleep(interval)
