"""A task shown while it runs: what is known of it, and its views on a terminal, as lines and as JSON."""
