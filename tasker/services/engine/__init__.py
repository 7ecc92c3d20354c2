"""Access to the engine: its SQL functions, the compiled templates, and the types of its arguments and answers."""
