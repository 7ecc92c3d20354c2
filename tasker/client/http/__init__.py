"""The client of Tasker's HTTP interface."""
