"""`tasker events`: domain events."""
