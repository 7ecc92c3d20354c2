"""PostgreSQL access, the only part that uses the driver: schema, migrations, connections and the embedded server."""
