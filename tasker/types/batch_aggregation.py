"""Totals over the results of batch workers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import Field

from tasker.types.model import Model


class BatchAggregationResult(Model):
    """Totals over all batches; `success_rate` is 0.0 to 1.0; `errors` is capped, `error_count` is not."""

    total_processed: int
    total_succeeded: int
    total_failed: int
    total_skipped: int
    batch_count: int
    success_rate: float
    errors: list[dict[str, Any]] = Field(default_factory=list)
    error_count: int


def aggregate_batch_results(
    worker_results: list[dict[str, Any] | None], max_errors: int = 100
) -> BatchAggregationResult:
    """Add up the results of batch workers; a None (a worker resolved by an operator) is skipped.

    `items_processed` and `processed_count` are the same number. Without `items_succeeded`, every processed item that
    did not fail counts as succeeded.
    """
    present = [result for result in worker_results if result is not None]
    errors = [error for result in present for error in result.get("errors") or []]
    processed = sum(_processed(result) for result in present)
    succeeded = sum(_succeeded(result) for result in present)
    return BatchAggregationResult(
        total_processed=processed,
        total_succeeded=succeeded,
        total_failed=_total(present, "items_failed"),
        total_skipped=_total(present, "items_skipped"),
        batch_count=len(present),
        success_rate=succeeded / processed if processed else 0.0,
        errors=errors[:max_errors],
        error_count=len(errors),
    )


def _processed(result: Mapping[str, Any]) -> int:
    return int(result.get("items_processed", result.get("processed_count", 0)) or 0)


def _succeeded(result: Mapping[str, Any]) -> int:
    if result.get("items_succeeded") is not None:
        return int(result["items_succeeded"])
    return _processed(result) - int(result.get("items_failed") or 0)


def _total(results: Iterable[Mapping[str, Any]], key: str) -> int:
    return sum(int(result.get(key) or 0) for result in results)
