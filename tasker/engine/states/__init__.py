"""The state machines of tasks and steps, as tables."""
