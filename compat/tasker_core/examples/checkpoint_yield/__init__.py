"""One batch that saves its progress: it is cut, worked through with checkpoints, added up."""

from __future__ import annotations

from tasker_core.examples.checkpoint_yield.handlers import (
    CheckpointYieldAggregatorHandler,
    CheckpointYieldAnalyzerHandler,
    CheckpointYieldWorkerHandler,
)

__all__ = ["CheckpointYieldAggregatorHandler", "CheckpointYieldAnalyzerHandler", "CheckpointYieldWorkerHandler"]
