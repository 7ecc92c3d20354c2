"""Conversion of YAML text to plain values with their positions in the file."""
