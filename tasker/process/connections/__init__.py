"""Connections of a process: its database, its broker, the engines over them, and the check of the server's capacity."""
