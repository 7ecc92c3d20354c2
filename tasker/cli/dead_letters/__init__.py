"""`tasker dlq`: dead letters."""
