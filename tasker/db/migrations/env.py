"""Alembic environment: runs in the connection and transaction opened by `tasker.db.migrate`, or offline."""

from __future__ import annotations

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    dialect_name="postgresql",
    as_sql=context.is_offline_mode(),
    version_table_schema="tasker",
)
with context.begin_transaction():
    context.run_migrations()
