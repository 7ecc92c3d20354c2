"""Tasks that need a person: the search for those that nothing moves, and the replay of failed ones."""
