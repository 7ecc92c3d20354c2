"""A long-running process beside its work: registered, leased, listening, supervised, and stopped in time."""
