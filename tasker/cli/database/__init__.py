"""`tasker db`: one module per larger command."""
