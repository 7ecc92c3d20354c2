"""Supervision of a process: restarts of failed parts, and its stop."""
