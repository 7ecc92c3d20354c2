"""How a process learns of work: what announces it, and what becomes of a lost listener."""
