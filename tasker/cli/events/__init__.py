"""`tasker events`."""
