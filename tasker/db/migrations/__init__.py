"""Alembic's side of the schema: one short file per migration, which runs the SQL file of the same name."""
