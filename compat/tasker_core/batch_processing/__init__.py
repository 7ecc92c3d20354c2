"""Batch processing: splitting work, processing batches, aggregating results."""

from __future__ import annotations

from tasker_core.batch_processing.batchable import Batchable, BatchAggregationScenario, BatchWorkerConfig

__all__ = ["BatchAggregationScenario", "BatchWorkerConfig", "Batchable"]
