"""Domain events from handlers to subscribers."""
