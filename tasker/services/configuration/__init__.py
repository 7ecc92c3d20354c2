"""The configuration of a process: where it comes from, how it is merged, what is odd about it."""
