"""Opening: resolve > call > settle."""
