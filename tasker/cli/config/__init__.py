"""`tasker config`: a module for each of its commands."""
