"""`tasker dlq`."""
