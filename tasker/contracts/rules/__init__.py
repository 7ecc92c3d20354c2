"""Rules for values in configurations and requests: permissions, retry profiles, bounds of numbers."""
