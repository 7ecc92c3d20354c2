"""Types that handlers use. Every name can be imported from here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tasker.lazy import names_of

if TYPE_CHECKING:
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
    from tasker.handlers.client_models import (
        ClientHealthResponse,
        ClientPaginationInfo,
        ClientStepAuditResponse,
        ClientStepReadiness,
        ClientStepResponse,
        ClientTaskListResponse,
        ClientTaskResponse,
    )
    from tasker.handlers.context import StepContext
    from tasker.handlers.decisions import DecisionPointOutcome
    from tasker.handlers.events.publisher import DomainEventMetadata, ExecutionResult, InProcessDomainEvent
    from tasker.handlers.legacy_event import FfiStepEvent
    from tasker.handlers.outcome_forms import DecisionType
    from tasker.handlers.results import (
        ErrorType,
        ResultStatus,
        StepError,
        StepExecutionResult,
        StepHandlerCallResult,
        StepHandlerResult,
    )
    from tasker.handlers.worker_models import (
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
        "tasker.handlers.batch_outcomes": (
            "BatchAggregationResult aggregate_batch_results BatchAnalyzerOutcome "
            "BatchProcessingOutcome CreateBatchesOutcome NoBatchesOutcome create_batches "
            "no_batches CursorConfig RustCursorConfig"
        ),
        "tasker.handlers.batch_worker": (
            "BatchMetadata BatchWorkerContext BatchWorkerOutcome FailureStrategy RustBatchWorkerInputs"
        ),
        "tasker.handlers.client_models": (
            "ClientHealthResponse ClientPaginationInfo ClientStepAuditResponse "
            "ClientStepReadiness ClientStepResponse ClientTaskListResponse ClientTaskResponse"
        ),
        "tasker.handlers.context": "StepContext",
        "tasker.handlers.decisions": "DecisionPointOutcome",
        "tasker.handlers.outcome_forms": "DecisionType",
        "tasker.handlers.events.publisher": "DomainEventMetadata ExecutionResult InProcessDomainEvent",
        "tasker.handlers.legacy_event": "FfiStepEvent",
        "tasker.handlers.results": (
            "ErrorType ResultStatus StepError StepExecutionResult StepHandlerCallResult StepHandlerResult"
        ),
        "tasker.handlers.worker_models": (
            "BootstrapConfig BootstrapResult ComponentHealth FfiDispatchMetrics HealthCheck "
            "LogContext StarvationWarning WorkerConfig WorkerMetrics WorkerState WorkerStatus"
        ),
    },
)
