"""Workflows in files: finding, reading and compiling templates, and matching handlers with them."""
