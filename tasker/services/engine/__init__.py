"""Access to the engine: its SQL functions, the compiled templates, what goes in and what comes out."""
