"""Example of one batch with checkpoints: splitting, processing, aggregating."""

from __future__ import annotations

from tasker_core.examples.checkpoint_yield.handlers import (
    CheckpointYieldAggregatorHandler,
    CheckpointYieldAnalyzerHandler,
    CheckpointYieldWorkerHandler,
)

__all__ = ["CheckpointYieldAggregatorHandler", "CheckpointYieldAnalyzerHandler", "CheckpointYieldWorkerHandler"]
