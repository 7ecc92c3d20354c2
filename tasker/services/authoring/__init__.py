"""Workflows in files: finding, reading and compiling templates, and fitting handlers to them."""
