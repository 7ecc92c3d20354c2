"""Permissions of what callers of the API may do. No behaviour."""
