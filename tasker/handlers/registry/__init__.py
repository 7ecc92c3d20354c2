"""Resolution of a handler's name in a template to something to call."""
