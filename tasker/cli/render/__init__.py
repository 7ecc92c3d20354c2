"""Text output of tasks, steps, values and tables."""
