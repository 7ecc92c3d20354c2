"""Assembly of processes from their objects."""
