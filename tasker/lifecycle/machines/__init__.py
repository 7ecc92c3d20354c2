"""State machines of tasks and steps, and the transition paths through them."""
