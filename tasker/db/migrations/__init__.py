"""Alembic migrations: one short file per migration, which runs the SQL file of the same name."""
