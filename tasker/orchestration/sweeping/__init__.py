"""Sweeps: what a message, a process or a timer should have moved and did not."""
