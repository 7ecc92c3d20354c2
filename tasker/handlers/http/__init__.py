"""HTTP requests of handlers: the client, and what a response means for the step."""
