"""Resources of a worker: clients of databases and services, created from `[resources.NAME]` and shared by handlers."""
