"""The calls of the HTTP API, by subject."""
