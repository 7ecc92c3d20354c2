"""Deletion of finished tasks that exceed their retention."""
