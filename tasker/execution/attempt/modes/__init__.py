"""Execution modes of handlers: on the event loop, in a thread, or in a child process."""
