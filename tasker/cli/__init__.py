"""Command line: one module per command, imported only when it is used. A command calls a service and prints it."""
