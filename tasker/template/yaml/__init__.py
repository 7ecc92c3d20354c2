"""YAML text to values that know their place."""
