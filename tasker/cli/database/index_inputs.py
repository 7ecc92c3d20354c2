"""`tasker db index-inputs`: index for searching tasks by their input."""

from __future__ import annotations

import click

from tasker.cli.connection import FORMAT, configured_for, database_at, print_as, require_database
from tasker.cli.options import DatabaseOption, database_options
from tasker.db.input_index import create_input_index, drop_input_index


@click.command("index-inputs")
@click.option("--drop", is_flag=True, help="Remove the index.")
@FORMAT
@database_options
def index_inputs(database: DatabaseOption, form: str, drop: bool) -> None:
    """Index task inputs, so that a search by an input field covers all tasks, not only the newest 20,000.

    `tasker task list --field 'order.id = 7'` and the search of the web UI use it. The index is built concurrently with
    running work, may take minutes on a large database, and adds a cost to each submission that grows with the size of
    the input.
    """
    chosen = configured_for(database)
    require_database(chosen.database_url, database.data_dir)
    with database_at(chosen, database.data_dir) as url:
        changed = (drop_input_index if drop else create_input_index)(url)
    print_as(form, {"indexed": not drop, "changed": changed}, lambda _: _text(drop, changed))


def _text(drop: bool, changed: bool) -> str:
    if drop:
        return "removed the index of inputs" if changed else "there is no index of inputs"
    return "created the index of inputs" if changed else "inputs are already indexed"
