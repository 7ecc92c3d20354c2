"""PostgreSQL: the only part that touches the driver. Schema, migrations, connections, the embedded server."""
