"""`tasker db`: a module for each of its larger commands."""
