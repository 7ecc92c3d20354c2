"""Types that handlers use. Every name can be imported from here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tasker.named import names_of

if TYPE_CHECKING:
    from tasker.types.batch_aggregation import BatchAggregationResult, aggregate_batch_results
    from tasker.types.batch_outcome import (
        BatchAnalyzerOutcome,
        BatchProcessingOutcome,
        CreateBatchesOutcome,
        NoBatchesOutcome,
        create_batches,
        no_batches,
    )
    from tasker.types.batch_worker import (
        BatchMetadata,
        BatchWorkerContext,
        BatchWorkerOutcome,
        FailureStrategy,
        RustBatchWorkerInputs,
    )
    from tasker.types.client import (
        ClientHealthResponse,
        ClientPaginationInfo,
        ClientStepAuditResponse,
        ClientStepReadiness,
        ClientStepResponse,
        ClientTaskListResponse,
        ClientTaskResponse,
    )
    from tasker.types.context import StepContext
    from tasker.types.cursor import CursorConfig, RustCursorConfig
    from tasker.types.decision import DecisionPointOutcome, DecisionType
    from tasker.types.events import DomainEventMetadata, ExecutionResult, InProcessDomainEvent
    from tasker.types.legacy_event import FfiStepEvent
    from tasker.types.result import (
        ErrorType,
        ResultStatus,
        StepError,
        StepExecutionResult,
        StepHandlerCallResult,
        StepHandlerResult,
    )
    from tasker.types.worker import (
        BootstrapConfig,
        BootstrapResult,
        ComponentHealth,
        FfiDispatchMetrics,
        HealthCheck,
        LogContext,
        StarvationWarning,
        WorkerConfig,
        WorkerMetrics,
        WorkerState,
        WorkerStatus,
    )

__all__ = [
    "BatchAggregationResult",
    "BatchAnalyzerOutcome",
    "BatchMetadata",
    "BatchProcessingOutcome",
    "BatchWorkerContext",
    "BatchWorkerOutcome",
    "BootstrapConfig",
    "BootstrapResult",
    "ClientHealthResponse",
    "ClientPaginationInfo",
    "ClientStepAuditResponse",
    "ClientStepReadiness",
    "ClientStepResponse",
    "ClientTaskListResponse",
    "ClientTaskResponse",
    "ComponentHealth",
    "CreateBatchesOutcome",
    "CursorConfig",
    "DecisionPointOutcome",
    "DecisionType",
    "DomainEventMetadata",
    "ErrorType",
    "ExecutionResult",
    "FailureStrategy",
    "FfiDispatchMetrics",
    "FfiStepEvent",
    "HealthCheck",
    "InProcessDomainEvent",
    "LogContext",
    "NoBatchesOutcome",
    "ResultStatus",
    "RustBatchWorkerInputs",
    "RustCursorConfig",
    "StarvationWarning",
    "StepContext",
    "StepError",
    "StepExecutionResult",
    "StepHandlerCallResult",
    "StepHandlerResult",
    "WorkerConfig",
    "WorkerMetrics",
    "WorkerState",
    "WorkerStatus",
    "aggregate_batch_results",
    "create_batches",
    "no_batches",
]

__getattr__ = names_of(
    __name__,
    {
        "batch_aggregation": "BatchAggregationResult aggregate_batch_results",
        "batch_outcome": "BatchAnalyzerOutcome BatchProcessingOutcome CreateBatchesOutcome NoBatchesOutcome "
        "create_batches no_batches",
        "batch_worker": "BatchMetadata BatchWorkerContext BatchWorkerOutcome FailureStrategy RustBatchWorkerInputs",
        "client": "ClientHealthResponse ClientPaginationInfo ClientStepAuditResponse ClientStepReadiness "
        "ClientStepResponse ClientTaskListResponse ClientTaskResponse",
        "context": "StepContext",
        "cursor": "CursorConfig RustCursorConfig",
        "decision": "DecisionPointOutcome DecisionType",
        "events": "DomainEventMetadata ExecutionResult InProcessDomainEvent",
        "legacy_event": "FfiStepEvent",
        "result": "ErrorType ResultStatus StepError StepExecutionResult StepHandlerCallResult StepHandlerResult",
        "worker": "BootstrapConfig BootstrapResult ComponentHealth FfiDispatchMetrics HealthCheck "
        "LogContext StarvationWarning WorkerConfig WorkerMetrics WorkerState WorkerStatus",
    },
)
