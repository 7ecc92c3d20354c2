"""The defaults of deleting what is old."""

from __future__ import annotations

RETENTION_INTERVAL_SECONDS = 3600
"""How often one process looks for what is to be deleted."""

SLICE_STEPS = 1_000
"""Steps per transaction; a task goes as a whole, however many it has."""

EVENTS_KEPT_DAYS = 30
"""Domain events that are older are deleted, whatever becomes of their tasks."""
