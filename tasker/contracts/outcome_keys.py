"""Where the result of a step that creates steps holds what it decided: handlers write it, the planner reads it."""

from __future__ import annotations

DECISION_KEY = "decision_point_outcome"
"""Of a decision step (C-21)."""

BATCH_KEY = "batch_processing_outcome"
"""Of a batchable step (C-51)."""
