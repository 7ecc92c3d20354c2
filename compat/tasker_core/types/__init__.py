"""Types for handlers. Every name is importable from here."""

from __future__ import annotations

from tasker.handlers.batch_outcomes import BatchAggregationResult, NoBatchesOutcome, RustCursorConfig, no_batches
from tasker.handlers.batch_worker import BatchWorkerOutcome
from tasker.handlers.events.publisher import DomainEventMetadata, ExecutionResult, InProcessDomainEvent
from tasker.handlers.reporting import LogContext
from tasker.handlers.results import StepHandlerCallResult
from tasker_core.types.batches import (
    BatchAnalyzerOutcome,
    BatchMetadata,
    BatchProcessingOutcome,
    BatchWorkerContext,
    CreateBatchesOutcome,
    CursorConfig,
    FailureStrategy,
    RustBatchWorkerInputs,
    aggregate_batch_results,
    create_batches,
)
from tasker_core.types.client import (
    ClientHealthResponse,
    ClientPaginationInfo,
    ClientStepAuditResponse,
    ClientStepReadiness,
    ClientStepResponse,
    ClientTaskListResponse,
    ClientTaskResponse,
)
from tasker_core.types.context import StepContext
from tasker_core.types.decision import DecisionPointOutcome, DecisionType
from tasker_core.types.results import ErrorType, ResultStatus, StepError, StepExecutionResult, StepHandlerResult
from tasker_core.types.step_event import FfiStepEvent
from tasker_core.types.worker import (
    BootstrapConfig,
    BootstrapResult,
    ComponentHealth,
    FfiDispatchMetrics,
    HealthCheck,
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
