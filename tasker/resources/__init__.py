"""Resources of a worker: clients of databases and services, made from `[resources.NAME]` and lent to handlers."""
