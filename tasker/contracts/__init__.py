"""Ports and frozen values that the layers, the backends and the plugins share.

Standard library only, but for `settings`, which stands on pydantic: whoever declares or reads settings imports it.
"""
