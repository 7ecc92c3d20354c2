"""`tasker task`: one module per command."""
