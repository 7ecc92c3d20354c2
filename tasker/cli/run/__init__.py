"""`tasker run`: a workflow in one process."""
