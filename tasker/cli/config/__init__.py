"""`tasker config`: one module per command."""
