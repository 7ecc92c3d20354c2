"""Tasks that need an operator: the search for stale tasks, and the replay of failed ones."""
