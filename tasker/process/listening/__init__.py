"""Detection of new work by a process: notifications, and recovery of lost listeners."""
