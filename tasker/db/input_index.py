"""Index of task inputs, for searches of tasks by fields of their inputs.

It is created only on demand, because every submission pays for it.
"""

from __future__ import annotations

import psycopg

from tasker.db.database import connect
from tasker.db.limits import MIGRATION
from tasker.db.queries import query
from tasker.errors import DatabaseError


def create_input_index(url: str) -> bool:
    """Create the index from all existing inputs without blocking running work; return False if it exists.

    An interrupted creation can be repeated. Raises `DatabaseError` if the role does not own the schema.
    """
    return _change(url, present=True)


def drop_input_index(url: str) -> bool:
    """Remove the index; return False if there is none. Raises `DatabaseError` if the role does not own the schema."""
    return _change(url, present=False)


def _change(url: str, *, present: bool) -> bool:
    with connect(url, session=MIGRATION, application_name="tasker input index") as connection:
        try:
            found = connection.execute(query("input_index", "state").encode()).fetchone()
            if present == (found is not None and found[0]):
                return False
            # an interrupted creation leaves an index that queries cannot use but writes still pay for
            if found is not None:
                connection.execute(query("input_index", "drop").encode())
            if present:
                connection.execute(query("input_index", "create").encode())
        except (psycopg.errors.InsufficientPrivilege, psycopg.errors.UndefinedTable) as error:
            raise DatabaseError(
                f"the index of inputs cannot be changed: {' '.join(str(error).split())}",
                hint="connect as the owner of the schema, after `tasker db upgrade`",
            ) from None
    return present or found is not None
