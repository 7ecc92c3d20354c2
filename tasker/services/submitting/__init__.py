"""Submission of tasks: in this process, in a transaction of the caller, or by message."""
