"""Domain events on their way from handlers to subscribers."""
