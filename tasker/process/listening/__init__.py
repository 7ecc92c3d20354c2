"""How a process hears of work: what announces it, and what becomes of a lost listener."""
