"""Workers, queues, metrics and health of everything that runs."""
