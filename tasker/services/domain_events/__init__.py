"""Reading of published domain events: lists, streams, and subscribers that continue where they stopped."""
