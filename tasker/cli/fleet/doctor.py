"""`tasker doctor`: diagnosis of a fleet and its database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from tasker.cli.connection import FORMAT, print_as
from tasker.cli.place.options import fleet_options, run_on_fleet
from tasker.cli.place.places import FleetTarget
from tasker.cli.render.values import screen_width, wrapped

if TYPE_CHECKING:
    from tasker.services.fleet.doctor import DoctorFinding

SOUND = {
    "versions": "all processes run this release",
    "connections": "the database server has enough for the fleet",
    "settings": "the settings of all processes are compatible",
    "clocks": "in sync with the database",
    "rows": "open tasks and a sample of the finished ones are consistent",
    "queues": "messages and workers match the rows",
}


@click.command()
@FORMAT
@fleet_options
def doctor(form: str, place: FleetTarget) -> None:
    """Diagnose the fleet: releases, connections, settings, clocks, rows, queues. Changes nothing.

    Every finding has a remedy. A finding marked `!` is repaired automatically or is only for information. The check
    reads the 20,000 oldest open tasks and a sample of the finished ones; `tasker db check` reads everything.

    \b
    Exit codes:
      0  nothing is wrong
      1  something is, or the database cannot be reached
    """
    from tasker.services.fleet.doctor import to_dict

    found = run_on_fleet(place, lambda app: app.doctor.findings())
    print_as(form, to_dict(found), lambda _: "\n".join(_lines(found, screen_width())))
    raise SystemExit(1 if any(each.wrong for each in found) else 0)


def _lines(found: Sequence[DoctorFinding], width: int | None) -> Iterator[str]:
    for check, sound in SOUND.items():
        mine = [each for each in found if each.check == check]
        if not mine:
            yield f"{click.style('✔', fg='green')} {check:<12} {sound}"
        for each in mine:
            mark, colour = ("✖", "red") if each.wrong else ("!", "yellow")
            yield f"{click.style(mark, fg=colour)} {check:<12} {wrapped(each.what, 15, width).lstrip()}"
            yield from (click.style(f"{'':15}{example}", dim=True) for example in each.examples)
            yield wrapped(f"→ {each.fix}", 15, width)
