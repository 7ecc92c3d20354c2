"""The state machines of tasks and steps, and the paths through them."""
