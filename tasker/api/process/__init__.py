"""The port of a worker or an orchestrator of its own: how it does, in words and numbers, and what it serves."""
