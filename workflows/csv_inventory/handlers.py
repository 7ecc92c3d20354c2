"""Plan, work, put together. Rows count from 0 without the header; a batch is [start_cursor, end_cursor)."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any

from tasker.batch_processing import BatchableHandler, best, merged_counts, weighted_average
from tasker.errors import NotFoundError, ValidationError
from tasker.types import StepContext, StepHandlerResult

Row = dict[str, str]
NEEDED = {"title", "category", "price", "rating", "stock"}


def find_file(context: StepContext) -> Path:
    """The file of the input; a relative path starts at this folder.

    Raises:
        NotFoundError: There is no such file.
    """
    path = Path(__file__).parent / str(context.get_input("csv_file_path"))
    if not path.is_file():
        raise NotFoundError(f"there is no file {path}", error_code="csv_not_found")
    return path


def read_rows(path: Path, start: int = 0, end: int | None = None) -> Iterator[Row]:
    """Rows [start, end) of the file.

    Raises:
        ValidationError: The header lacks a column that the analysis needs.
    """
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        missing = NEEDED.difference(reader.fieldnames or NEEDED)
        if missing:
            raise ValidationError(f"{path} lacks the columns {', '.join(sorted(missing))}", error_code="csv_columns")
        yield from islice(reader, start, end)


class AnalyzeCsvHandler(BatchableHandler):
    """Counts the rows and answers with the batches; a file without rows needs none."""

    handler_name = "csv_processing.analyze_csv"

    def call(self, context: StepContext) -> StepHandlerResult:
        total = sum(1 for _ in read_rows(find_file(context)))
        return self.batch_analyzer_success(
            cursor_configs=self.create_cursor_ranges(
                total,
                batch_size=context.get_input_or("batch_size", context.get_config("batch_size")),
                max_batches=context.get_input_or("max_workers", context.get_config("max_workers")),
            ),
            total_items=total,
            worker_template_name="process_csv_batch",
        )


class ProcessCsvBatchHandler(BatchableHandler):
    """Reads only the rows of its batch; nothing is written, so an attempt can be repeated."""

    handler_name = "csv_processing.process_csv_batch"

    def call(self, context: StepContext) -> StepHandlerResult:
        no_op = self.handle_no_op_worker(context)
        if no_op is not None:
            return no_op
        batch = self.get_batch_context(context)
        if batch is None:
            raise ValidationError("this handler runs as a batch worker", hint="set `type: batch_worker` on the step")
        rows = list(read_rows(find_file(context), batch.start_cursor, batch.end_cursor))
        position = {"batch_id": batch.batch_id, "start_row": batch.start_cursor, "end_row": batch.end_cursor}
        return self.success(summarize(rows) | position)


def summarize(rows: list[Row]) -> dict[str, Any]:
    """The figures of some rows. Money is added as decimals; the first of equally expensive products wins."""
    dearest = max(rows, key=lambda row: Decimal(row["price"]), default=None)
    ratings = [Decimal(row["rating"]) for row in rows]
    return {
        "processed_count": len(rows),
        "total_inventory_value": float(sum(Decimal(row["price"]) * int(row["stock"]) for row in rows)),
        "category_counts": dict(Counter(row["category"] for row in rows)),
        "max_price": float(dearest["price"]) if dearest else 0.0,
        "max_price_product": dearest["title"] if dearest else None,
        "average_rating": float(sum(ratings) / len(ratings)) if ratings else 0.0,
    }


class AggregateCsvResultsHandler(BatchableHandler):
    """Puts the batches together; without batches every figure is zero."""

    handler_name = "csv_processing.aggregate_csv_results"

    def call(self, context: StepContext) -> StepHandlerResult:
        return self.aggregate_batch_worker_results(
            self.detect_aggregation_scenario(context.dependency_results, "analyze_csv", "process_csv_batch_"),
            zero_metrics=combine({}),
            aggregation_fn=combine,
        )


def combine(batches: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """One summary of many; the rating is weighted with the rows of each batch."""
    parts = list(batches.values())
    dearest = best(parts, "max_price") or {"max_price": 0.0, "max_price_product": None}
    return {
        "total_processed": sum(part["processed_count"] for part in parts),
        "total_inventory_value": round(sum(part["total_inventory_value"] for part in parts), 2),
        "category_counts": merged_counts(parts, "category_counts"),
        "max_price": dearest["max_price"],
        "max_price_product": dearest["max_price_product"],
        "overall_average_rating": round(weighted_average(parts, "average_rating", "processed_count"), 4),
    }
