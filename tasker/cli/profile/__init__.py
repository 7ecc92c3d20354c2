"""`tasker profile`: the servers that a person uses."""
