"""A diamond, a decision and batches in one workflow, all as decorated functions."""

from __future__ import annotations

from typing import Any

from tasker.handlers.decisions import BatchConfig, Decision
from tasker.step_handler import batch_analyzer, batch_worker, decision_handler, depends_on, inputs, step_handler
from tasker.types import BatchWorkerContext, StepContext

Result = dict[str, Any]


@step_handler("diamond_decision_batch.start")
@inputs("numbers")
def start(numbers: list[int]) -> Result:
    return {"numbers": sorted(numbers)}


@step_handler("diamond_decision_batch.branch")
@depends_on(first="diamond_start")
async def branch(first: Result, context: StepContext) -> Result:
    return {"numbers": [n for n in first["numbers"] if n % 2 == context.get_config("remainder")]}


@decision_handler("diamond_decision_batch.routing_decision")
@depends_on(evens="branch_evens", odds="branch_odds")
def routing_decision(evens: Result, odds: Result) -> Decision:
    count_evens, count_odds = len(evens["numbers"]), len(odds["numbers"])
    if count_evens == count_odds == 0:
        return Decision.skip("there are no numbers", route="none")
    if count_evens >= count_odds:
        return Decision.route(["analyze_evens"], route="evens")
    return Decision.route(["analyze_odds"], route="odds")


@batch_analyzer("diamond_decision_batch.analyze_evens", worker_template="process_evens")
@depends_on(group="branch_evens")
def analyze_evens(group: Result, context: StepContext) -> BatchConfig:
    return plan(group, context)


@batch_analyzer("diamond_decision_batch.analyze_odds", worker_template="process_odds")
@depends_on(group="branch_odds")
def analyze_odds(group: Result, context: StepContext) -> BatchConfig:
    return plan(group, context)


def plan(group: Result, context: StepContext) -> BatchConfig:
    """The input may ask for another batch size than the template."""
    size = context.get_input_or("batch_size", context.get_config("batch_size"))
    return BatchConfig(total_items=len(group["numbers"]), batch_size=size)


@batch_worker("diamond_decision_batch.sum_squares")
def sum_squares(batch_context: BatchWorkerContext, context: StepContext) -> Result:
    numbers = context.get_dependency_field(context.get_config("from"), "numbers")
    batch = numbers[batch_context.start_cursor : batch_context.end_cursor]
    return {"items_processed": len(batch), "sum_of_squares": sum(n * n for n in batch)}


@step_handler("diamond_decision_batch.aggregate_results")
@depends_on(decision="routing_decision")
def aggregate_results(decision: Result, context: StepContext) -> Result:
    route = decision["route"]
    batches = context.get_all_dependency_results(f"process_{route}")
    return {
        "route": route,
        "sum_of_squares": sum(batch["sum_of_squares"] for batch in batches),
        "batches": len(batches),
    }
