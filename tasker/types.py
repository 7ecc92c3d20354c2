"""Types that handlers use. Every name can be imported from here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tasker.lazy import names_of

if TYPE_CHECKING:
    from tasker.handlers.again import AwaitedEvent
    from tasker.handlers.batch_outcomes import (
        BatchAggregationResult,
        BatchAnalyzerOutcome,
        BatchProcessingOutcome,
        CreateBatchesOutcome,
        CursorConfig,
        NoBatchesOutcome,
        RustCursorConfig,
        aggregate_batch_results,
        create_batches,
        no_batches,
    )
    from tasker.handlers.batch_worker import (
        BatchMetadata,
        BatchWorkerContext,
        BatchWorkerOutcome,
        FailureStrategy,
        RustBatchWorkerInputs,
    )
    from tasker.handlers.context import StepContext
    from tasker.handlers.decisions import DecisionPointOutcome
    from tasker.handlers.events.publisher import DomainEventMetadata, ExecutionResult, InProcessDomainEvent
    from tasker.handlers.outcome_forms import DecisionType
    from tasker.handlers.reporting import LogContext
    from tasker.handlers.results import ErrorType, ResultStatus, StepHandlerCallResult, StepHandlerResult

__all__ = [
    "AwaitedEvent",
    "BatchAggregationResult",
    "BatchAnalyzerOutcome",
    "BatchMetadata",
    "BatchProcessingOutcome",
    "BatchWorkerContext",
    "BatchWorkerOutcome",
    "CreateBatchesOutcome",
    "CursorConfig",
    "DecisionPointOutcome",
    "DecisionType",
    "DomainEventMetadata",
    "ErrorType",
    "ExecutionResult",
    "FailureStrategy",
    "InProcessDomainEvent",
    "LogContext",
    "NoBatchesOutcome",
    "ResultStatus",
    "RustBatchWorkerInputs",
    "RustCursorConfig",
    "StepContext",
    "StepHandlerCallResult",
    "StepHandlerResult",
    "aggregate_batch_results",
    "create_batches",
    "no_batches",
]

__getattr__ = names_of(
    __name__,
    {
        "tasker.handlers.again": "AwaitedEvent",
        "tasker.handlers.batch_outcomes": (
            "BatchAggregationResult aggregate_batch_results BatchAnalyzerOutcome "
            "BatchProcessingOutcome CreateBatchesOutcome NoBatchesOutcome create_batches "
            "no_batches CursorConfig RustCursorConfig"
        ),
        "tasker.handlers.batch_worker": (
            "BatchMetadata BatchWorkerContext BatchWorkerOutcome FailureStrategy RustBatchWorkerInputs"
        ),
        "tasker.handlers.context": "StepContext",
        "tasker.handlers.decisions": "DecisionPointOutcome",
        "tasker.handlers.outcome_forms": "DecisionType",
        "tasker.handlers.events.publisher": "DomainEventMetadata ExecutionResult InProcessDomainEvent",
        "tasker.handlers.reporting": "LogContext",
        "tasker.handlers.results": "ErrorType ResultStatus StepHandlerCallResult StepHandlerResult",
    },
)
