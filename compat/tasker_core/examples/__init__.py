"""Example handlers, to read and to try a worker with."""

from __future__ import annotations

from tasker_core.examples.checkpoint_yield import (
    CheckpointYieldAggregatorHandler,
    CheckpointYieldAnalyzerHandler,
    CheckpointYieldWorkerHandler,
)

__all__ = ["CheckpointYieldAggregatorHandler", "CheckpointYieldAnalyzerHandler", "CheckpointYieldWorkerHandler"]
