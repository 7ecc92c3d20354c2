"""`tasker task`: a module for each of its commands."""
