"""Registration of a process: its entry in the registry, its lease, and the leases of dead workers."""
