"""Reading tasks, waiting for them, and explaining what they wait for."""
