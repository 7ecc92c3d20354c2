"""Submission of tasks: check, draft, admit, create, start."""
