"""YAML text to values with their locations."""
