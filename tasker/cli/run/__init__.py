"""`tasker run`: one workflow, one process, from nothing to its result."""
