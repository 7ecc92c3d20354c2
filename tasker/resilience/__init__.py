"""Circuit breakers of a process: the pure state machines combined with a clock, a log and names."""
