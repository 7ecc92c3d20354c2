"""Client of Tasker's HTTP API."""
