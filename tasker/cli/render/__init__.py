"""Tasks, steps and tables as text."""
