"""YAML text to plain values that know their place in the file."""
