"""Types for handlers. Every name is importable from here."""

from __future__ import annotations

from tasker.handlers.batch_outcomes import BatchAggregationResult, NoBatchesOutcome, RustCursorConfig, no_batches
from tasker.handlers.batch_worker import BatchWorkerOutcome
from tasker.handlers.client_models import (
    ClientHealthResponse,
    ClientPaginationInfo,
    ClientStepAuditResponse,
    ClientStepReadiness,
    ClientStepResponse,
    ClientTaskListResponse,
    ClientTaskResponse,
)
from tasker.handlers.events.publisher import DomainEventMetadata, ExecutionResult, InProcessDomainEvent
from tasker.handlers.results import StepError, StepExecutionResult, StepHandlerCallResult
from tasker.handlers.worker_models import (
    BootstrapResult,
    ComponentHealth,
    FfiDispatchMetrics,
    HealthCheck,
    LogContext,
    StarvationWarning,
    WorkerConfig,
    WorkerMetrics,
    WorkerStatus,
)
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
from tasker_core.types.context import FfiStepEvent, StepContext
from tasker_core.types.decision import DecisionPointOutcome, DecisionType
from tasker_core.types.results import ErrorType, ResultStatus, StepHandlerResult
from tasker_core.types.worker import BootstrapConfig, WorkerState

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
