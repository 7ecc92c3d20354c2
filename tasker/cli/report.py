"""`tasker db report`: what takes room."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from tasker.cli.connection import FORMAT, connected, print_as
from tasker.cli.options import Database, database_options

if TYPE_CHECKING:
    from tasker.services.database.sizes import Sizes


@click.command()
@FORMAT
@database_options
def report(database: Database, form: str) -> None:
    """Show what takes room: each table, its dead rows, and how much a task costs.

    Reads the server's statistics, which are some moments old, and no rows.
    """
    found = connected(database, lambda app: app.sizes.read())
    told = {**asdict(found), "bytes": found.bytes, "tasks": found.tasks, "bytes_per_task": found.bytes_per_task}
    print_as(form, told if form == "json" else found, _text)


def _text(found: Sizes) -> str:
    from tasker.cli.render.table import table

    rows = [
        (
            each.table,
            *map(_size, (each.table_bytes, each.index_bytes)),
            *(f"{number:,}" for number in (each.rows, each.dead)),
            f"{each.vacuumed_at:%Y-%m-%d %H:%M}" if each.vacuumed_at else "never",
        )
        for each in found.tables
    ]
    total = f"{_size(found.bytes)} for {found.tasks:,} tasks, {_size(found.bytes_per_task)} each"
    return "\n".join((table(("table", "size", "indexes", "rows", "dead", "vacuumed"), rows), "", total))


def _size(number: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1024:
            return f"{number:,.0f} {unit}"
        number /= 1024
    return f"{number:,.1f} TB"
