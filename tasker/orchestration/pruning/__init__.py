"""Finished tasks that are older than their rule allows go."""
