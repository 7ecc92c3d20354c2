"""`tasker profile`: named servers of a user."""
