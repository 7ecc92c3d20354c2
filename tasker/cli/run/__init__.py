"""`tasker run`: one workflow in one process, from submission to result."""
