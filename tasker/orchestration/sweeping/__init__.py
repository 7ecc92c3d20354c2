"""Sweeps: repairs of what a message, a process or a timer failed to advance."""
