"""What a step that creates others says, and what becomes of the graph for it."""
