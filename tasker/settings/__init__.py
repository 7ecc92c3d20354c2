"""Typed settings: the parameters, and the conversion of text to values. `tasker.services.configuration` reads the
files.

Nothing is imported here, because importing pydantic is slow and commands without configuration do not need it.
"""
