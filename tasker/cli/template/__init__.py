"""`tasker template` and `tasker new`: commands for authors of workflows."""
