"""Handler classes behind functions that make decisions, split work into batches, process a batch, or call an API.

Their decorators import this module: a worker with plain step functions only needs no models of decisions and batches.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from tasker.errors import PermanentError
from tasker.handlers.batch_arithmetic import (
    BatchAggregationScenario,
    Batches,
    analysis_result,
    no_op_result,
    ranges_by_size,
    whole_number,
    worker_result,
)
from tasker.handlers.batch_outcomes import BatchAnalyzerOutcome, CursorConfig
from tasker.handlers.batch_worker import BatchWorkerContext, BatchWorkerOutcome
from tasker.handlers.binding import Reader, adapter_of, validated
from tasker.handlers.context import StepContext
from tasker.handlers.decisions import BatchConfig, Decision, DecisionPointOutcome, decision_result
from tasker.handlers.function_handlers import FunctionHandler
from tasker.handlers.handler_roles import HandlerRole
from tasker.handlers.http.response import APIMixin
from tasker.handlers.results import StepHandlerResult, described, invalid_result


class DecisionFunction(FunctionHandler):
    """Handler of a function that returns a `Decision`."""

    handler_role = HandlerRole.DECISION

    def convert(self, value: Any) -> StepHandlerResult:
        if isinstance(value, StepHandlerResult):
            return value
        outcome = value.outcome if isinstance(value, Decision) else value
        if not isinstance(outcome, DecisionPointOutcome):
            raise _unexpected(value, "Decision.route([...]) or Decision.skip(reason)")
        return decision_result(outcome)


class BatchAnalyzerFunction(FunctionHandler):
    """Handler of a function that returns a `BatchConfig`."""

    handler_role = HandlerRole.ANALYZER
    worker_template: ClassVar[str]

    def convert(self, value: Any) -> StepHandlerResult:
        if isinstance(value, StepHandlerResult):
            return value
        if isinstance(value, BatchConfig):
            value = _analysis(value)
        if not isinstance(value, BatchAnalyzerOutcome):
            raise _unexpected(value, "BatchConfig(total_items=..., batch_size=...)")
        data = {**value.batch_metadata, "batch_metadata": value.batch_metadata}
        return analysis_result(self.worker_template, value.cursor_configs, value.total_items, data, None)


class BatchWorkerFunction(FunctionHandler):
    """Handler of a function that processes one batch; the placeholder batch of an empty analysis never reaches it."""

    handler_role = HandlerRole.WORKER

    def readers(self) -> Mapping[str, Reader]:
        return {"batch_context": BatchWorkerContext.from_step_context}

    def shortcut(self, context: StepContext) -> StepHandlerResult | None:
        """Return the result of the placeholder batch, or None for a real batch."""
        batch = BatchWorkerContext.from_step_context(context)
        if batch is None:
            raise PermanentError(
                f"step {context.step_name!r} has no batch inputs", hint="use type batch_worker for it in the template"
            )
        return no_op_result(batch.batch_id) if batch.is_no_op else None

    def convert(self, value: Any) -> StepHandlerResult:
        """Convert a `BatchWorkerOutcome`, or any return value that a step function may have."""
        return worker_result(value, None, None) if isinstance(value, BatchWorkerOutcome) else super().convert(value)


class BatchAggregatorFunction(FunctionHandler):
    """Handler of a function that aggregates the results of batch workers."""

    handler_role = HandlerRole.AGGREGATOR
    analyzer: ClassVar[str]
    worker_template: ClassVar[str]
    model: ClassVar[type | None]

    def readers(self) -> Mapping[str, Reader]:
        """Return the reader of `batches`, which validates each result to the declared model."""
        adapter = None if self.model is None else adapter_of(self.model)

        def made(name: str, result: dict[str, Any]) -> Any:
            return result if adapter is None else validated(adapter, result, f"result of step {name!r} (for 'batches')")

        def read(context: StepContext) -> Batches[Any]:
            scenario = BatchAggregationScenario.detect(context.dependency_results, self.analyzer, self.worker_template)
            return Batches.of(scenario, made)

        return {"batches": read}


class ApiFunction(APIMixin, FunctionHandler):
    """Handler of a function that calls an HTTP API through its parameter `api`."""

    def readers(self) -> Mapping[str, Reader]:
        """Return the reader of `api`: this handler, which has the HTTP methods."""
        return {"api": lambda context: self}


def _analysis(config: BatchConfig) -> BatchAnalyzerOutcome:
    total = whole_number("total_items", config.total_items, 0)
    ranges = ranges_by_size(total, config.batch_size)
    cursors = [CursorConfig(start_cursor=start, end_cursor=end) for start, end in ranges]
    return BatchAnalyzerOutcome(cursor_configs=cursors, total_items=total, batch_metadata=config.metadata)


def _unexpected(value: Any, wanted: str) -> PermanentError:
    return invalid_result(f"the function returned {described(value)}, expected {wanted}")
