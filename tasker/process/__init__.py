"""What every long-running process does beside its work: stay registered, supervise its services, stop in time."""
