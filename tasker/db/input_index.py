"""An index of what tasks were given, for whoever looks for tasks by fields of their inputs.

It is made on demand only: every submission pays for it.
"""

from __future__ import annotations

import psycopg

from tasker.db.database import connect
from tasker.db.limits import MIGRATION
from tasker.db.queries import query
from tasker.errors import DatabaseError


def create_input_index(url: str) -> bool:
    """Make it beside running work, from all inputs there are; False where it was there. Safe to repeat when cut off.

    Raises `DatabaseError` for whoever does not own the schema.
    """
    return _change(url, present=True)


def drop_input_index(url: str) -> bool:
    """Remove it; False where there was none. Raises `DatabaseError` for whoever does not own the schema."""
    return _change(url, present=False)


def _change(url: str, *, present: bool) -> bool:
    with connect(url, session=MIGRATION, application_name="tasker input index") as connection:
        try:
            found = connection.execute(query("input_index", "state").encode()).fetchone()
            if present == (found is not None and found[0]):
                return False
            if found is not None:  # what a creation left that was cut off serves nobody and costs all the same
                connection.execute(query("input_index", "drop").encode())
            if present:
                connection.execute(query("input_index", "create").encode())
        except (psycopg.errors.InsufficientPrivilege, psycopg.errors.UndefinedTable) as error:
            raise DatabaseError(
                f"the index of inputs cannot be changed: {' '.join(str(error).split())}",
                hint="connect as the owner of the schema, after `tasker db upgrade`",
            ) from None
    return present or found is not None
