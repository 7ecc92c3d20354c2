"""Target fleet of a command: a database or a server."""
