"""Where a command finds its fleet: a database, or a server."""
