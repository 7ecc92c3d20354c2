"""Requests of commands to a server, in place of a database."""
