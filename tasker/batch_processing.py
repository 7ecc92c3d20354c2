"""Batch processing: splitting work into batches, processing them, and aggregating the results."""

from __future__ import annotations

from tasker.handlers.batch_arithmetic import (
    BatchAggregationScenario,
    Batches,
    best,
    merged_counts,
    total,
    weighted_average,
)
from tasker.handlers.batchable import Batchable, BatchableHandler, BatchableMixin, BatchWorkerConfig

__all__ = [
    "BatchAggregationScenario",
    "BatchWorkerConfig",
    "Batchable",
    "BatchableHandler",
    "BatchableMixin",
    "Batches",
    "best",
    "merged_counts",
    "total",
    "weighted_average",
]
