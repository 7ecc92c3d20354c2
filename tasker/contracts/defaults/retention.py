"""Defaults of deleting old data."""

from __future__ import annotations

RETENTION_INTERVAL_SECONDS = 3600
"""Interval at which one process prunes old data."""

SLICE_STEPS = 1_000
"""Steps deleted per transaction; a task is always deleted completely, even if it has more steps."""

EVENTS_KEPT_DAYS = 30
"""Age in days at which domain events are deleted, even if their tasks are retained."""
