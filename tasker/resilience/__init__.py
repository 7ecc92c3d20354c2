"""The circuit breakers of a process: with the clock, the log and the names that the pure ones do not know."""
