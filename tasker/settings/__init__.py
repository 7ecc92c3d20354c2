"""Typed settings: what can be configured, and how text becomes values. `tasker.services.configuration` reads the files.

Nothing is imported here, because pydantic takes a while: a command without configuration does not pay for it.
"""
