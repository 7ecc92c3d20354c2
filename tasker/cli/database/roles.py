"""`tasker db roles`: database roles and their rights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from tasker.cli.connection import FORMAT, configured_for, database_at, print_as, require_database
from tasker.cli.options import DatabaseOption, database_options
from tasker.db.roles import PREFIX, Role, Roles

if TYPE_CHECKING:
    from tasker.app.configured import Configured


@click.command()
@click.option("--prefix", default=PREFIX, show_default=True, help="Prefix of the role names.")
@click.option("--dry-run", is_flag=True, help="Only print the SQL.")
@FORMAT
@database_options
def roles(database: DatabaseOption, form: str, prefix: str, dry_run: bool) -> None:
    """Create a role for each kind of process, with the least rights each; safe to repeat.

    PREFIX_worker, PREFIX_orchestrator and PREFIX_api are for processes, PREFIX_exporter only reads metrics. The roles
    cannot log in: create users that are members (`create role w1 login password '...' in role tasker_worker`). Run it
    again after each `tasker db upgrade`, as the owner of the schema.
    """
    chosen = configured_for(database)
    wanted = Roles(prefix, _of_backend(chosen))
    if dry_run:
        sql = wanted.sql()
        print_as(form, {"sql": sql} if form == "json" else sql, str)
        return
    require_database(chosen.database_url, database.data_dir)
    with database_at(chosen, database.data_dir) as url:
        print_as(form, wanted.apply(url), _text)


def _of_backend(chosen: Configured) -> Callable[[Sequence[str]], str] | None:
    from tasker.contracts.messaging import GrantsRoles
    from tasker.messaging.registry import load_backend

    loaded = load_backend(chosen.backend, {})
    return loaded.role_sql if isinstance(loaded, GrantsRoles) else None


def _text(found: Sequence[Role]) -> str:
    return "\n".join(
        f"{each.name}: {'created' if each.made else 'already exists'}, privileges granted" for each in found
    )
