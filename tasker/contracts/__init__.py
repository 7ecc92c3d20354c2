"""Ports and frozen values shared by the layers, the backends and the plugins.

Only `settings` depends on pydantic; all other modules use the standard library alone.
"""
