"""That others know of a process: its entry in the registry, its lease, and the leases of those that died."""
