"""Waiting for the end of tasks, including notifications of ends in other processes."""
