"""Execution of a SQL file as a migration, without SQLAlchemy's parameter syntax."""

from __future__ import annotations

from pathlib import Path

from alembic import op


def run_sql(name: str) -> None:
    """Execute the file `name` below the folder of SQL migrations (`0001_initial.sql`), or print it if offline."""
    context = op.get_context()
    folder: Path = context.config.attributes["sql_folder"]  # type: ignore[union-attr]
    sql = (folder / name).read_text(encoding="utf-8")
    if context.as_sql:
        context.impl.static_output(sql)
    else:
        op.get_bind().execution_options(no_parameters=True).exec_driver_sql(sql)
