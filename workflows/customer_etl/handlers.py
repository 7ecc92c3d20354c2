"""An ETL run over customers and their transactions; the sources at the end are functions of the customer's number."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tasker.errors import BusinessLogicError, TimeoutError
from tasker.step_handler import depends_on, inputs, step_handler
from tasker.types import StepContext

Result = dict[str, Any]


@step_handler("data_pipeline.extract_customer_profiles")
@inputs("processing_date")
def extract_customer_profiles(processing_date: str, context: StepContext) -> Result:
    total = context.get_input_or("total_records", context.get_config("total_records"))
    size = context.get_input_or("partition_size", context.get_config("partition_size"))
    ranges = partitions(total, size)
    return {
        "total_records": total,
        "partitions": [
            {"file": f"profiles-{processing_date}-{first:07}.csv", "first": first, "end": end} for first, end in ranges
        ],
    }


@step_handler("data_pipeline.extract_transaction_history")
@inputs("processing_date")
async def extract_transaction_history(processing_date: str, context: StepContext) -> Result:
    total = context.get_input_or("total_records", context.get_config("total_records"))
    return {"day": processing_date, "transactions": sum(transaction_count(number) for number in range(total))}


@step_handler("data_pipeline.enrich_customer_data")
@depends_on(profiles="extract_customer_profiles")
@inputs("simulate")
def enrich_customer_data(profiles: Result, simulate: Result | None, context: StepContext) -> Result:
    """A broken row is skipped and counted; an unreachable service fails the whole step, which then runs again."""
    faults = simulate or {}
    if context.retry_count < faults.get("api_timeouts", 0):
        raise TimeoutError("the demographics service did not answer in time", error_code="api_timeout")
    segments: Counter[str] = Counter()
    skipped = 0
    for partition in profiles["partitions"]:
        for number in range(partition["first"], partition["end"]):
            customer = read_customer(number, faults.get("malformed_every", 0))
            if customer["email"] is None:
                skipped += 1
            else:
                segments[segment_of(customer)] += 1
    processed = segments.total()
    error_rate = round(skipped / max(processed, 1), 4)
    check_quality(processed, skipped, error_rate, context.get_config("max_error_rate"))
    return {
        "processed": processed,
        "skipped": skipped,
        "error_rate": error_rate,
        "segments": dict(sorted(segments.items())),
    }


@step_handler("data_pipeline.join_transactions")
@depends_on(customers="enrich_customer_data", history="extract_transaction_history")
def join_transactions(customers: Result, history: Result) -> Result:
    count = max(customers["processed"], 1)
    return {
        "rows": [{"segment": name, "customers": size} for name, size in customers["segments"].items()],
        "transactions_per_customer": round(history["transactions"] / count, 3),
    }


@step_handler("data_pipeline.load_to_warehouse")
@depends_on(joined="join_transactions")
@inputs("processing_date")
async def load_to_warehouse(joined: Result, processing_date: str) -> Result:
    return {"table": f"customer_segments/day={processing_date}", "rows_loaded": len(joined["rows"])}


@step_handler("data_pipeline.generate_summary_report")
@depends_on(
    profiles="extract_customer_profiles",
    customers="enrich_customer_data",
    joined="join_transactions",
    load="load_to_warehouse",
)
def generate_summary_report(profiles: Result, customers: Result, joined: Result, load: Result) -> Result:
    return {
        "partitions": len(profiles["partitions"]),
        "extracted": profiles["total_records"],
        "processed": customers["processed"],
        "skipped": customers["skipped"],
        "transactions_per_customer": joined["transactions_per_customer"],
        "loaded_into": load["table"],
    }


def partitions(total: int, size: int) -> list[tuple[int, int]]:
    """Half-open ranges of `size` that cover `total`; the last one may be shorter."""
    return [(first, min(first + size, total)) for first in range(0, total, size)]


def check_quality(processed: int, skipped: int, error_rate: float, limit: float) -> None:
    """Too many broken rows are a fault of the source: running again would not help.

    Raises:
        BusinessLogicError: `data_quality_issue`, with the counts in its metadata.
    """
    if error_rate > limit:
        raise BusinessLogicError(
            f"{skipped} broken rows to {processed} good ones: above the limit of {limit:.0%}",
            error_code="data_quality_issue",
            metadata={"processed": processed, "skipped": skipped, "error_rate": error_rate},
        )


# --- what stands in for the sources -------------------------------------------------------------------------------


def read_customer(number: int, malformed_every: int) -> Result:
    broken = malformed_every and number % malformed_every == 0
    return {"id": number, "email": None if broken else f"customer{number}@example.com", "age": 18 + number * 7 % 60}


def transaction_count(number: int) -> int:
    return number % 4


def segment_of(customer: Result) -> str:
    return "young" if customer["age"] < 30 else "middle" if customer["age"] < 60 else "senior"
