"""`tasker db report`: space and time used in the database."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from tasker.cli.connection import FORMAT, connected, print_as
from tasker.cli.options import DatabaseOption, database_options

if TYPE_CHECKING:
    from tasker.app import App
    from tasker.services.database.sizes import CostlyStatements, Sizes


@click.command()
@FORMAT
@database_options
def report(database: DatabaseOption, form: str) -> None:
    """Show the space used (each table, its dead rows, the size of a task), and the statements that take most time.

    Reads the server's statistics, which are slightly delayed, and no rows. Statements are listed only if the extension
    pg_stat_statements is installed.
    """

    async def read(app: App) -> tuple[Sizes, CostlyStatements]:
        return await app.sizes.read(), await app.sizes.costly()

    found, costly = connected(database, read)
    told = {**asdict(found), "bytes": found.bytes, "tasks": found.tasks, "bytes_per_task": found.bytes_per_task}
    told |= {"costly": asdict(costly)}
    print_as(form, told, lambda _: "\n".join((_text(found), "", _costly_text(costly))))


def _costly_text(found: CostlyStatements) -> str:
    from tasker.cli.render.table import table
    from tasker.cli.render.values import one_line

    if found.missing:
        return found.missing
    rows = [
        (f"{each.total_ms / 1000:,.1f} s", f"{each.calls:,}", f"{each.mean_ms:,.2f} ms", one_line(each.statement, 100))
        for each in found.statements
    ]
    return table(("total", "calls", "mean", "statement"), rows)


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
