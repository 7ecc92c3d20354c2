"""Public API of tasker_core on Tasker: handlers and applications that were written for it run unchanged."""

from __future__ import annotations

from tasker_core._tasker_core import (
    __version__,
    check_starvation_warnings,
    cleanup_timeouts,
    complete_step_event,
    get_ffi_dispatch_metrics,
    get_rust_version,
    get_version,
    health_check,
    poll_in_process_events,
    poll_step_events,
)
from tasker_core.batch_processing import (
    Batchable,
    BatchAggregationScenario,
    BatchWorkerConfig,
)
from tasker_core.bootstrap import (
    bootstrap_worker,
    get_worker_status,
    is_worker_running,
    stop_worker,
    transition_to_graceful_shutdown,
)
from tasker_core.client import HealthResponse as ClientHealthResponse
from tasker_core.client import PaginationInfo as ClientPaginationInfo
from tasker_core.client import StepAuditResponse as ClientStepAuditResponse
from tasker_core.client import StepResponse as ClientStepResponse
from tasker_core.client import (
    TaskerClient,
)
from tasker_core.client import TaskListResponse as ClientTaskListResponse
from tasker_core.client import TaskResponse as ClientTaskResponse
from tasker_core.domain_events import (
    BasePublisher,
    BaseSubscriber,
    EventDeclaration,
    InProcessDomainEventPoller,
    PublishContext,
    StepEventContext,
    StepResult,
)
from tasker_core.errors import (
    AuthenticationError,
    AuthorizationError,
    BusinessLogicError,
    ConfigurationError,
    NetworkError,
    NotFoundError,
    PermanentError,
    RateLimitError,
    ResourceContentionError,
    RetryableError,
    ServiceUnavailableError,
)
from tasker_core.errors import TimeoutError as StepTimeoutError
from tasker_core.errors import ValidationError as StepValidationError
from tasker_core.errors.error_classifier import (
    ErrorClassifier,
    get_classifier,
    is_permanent,
    is_retryable,
)
from tasker_core.event_bridge import (
    EventBridge,
    EventNames,
)
from tasker_core.event_poller import (
    EventPoller,
)
from tasker_core.exceptions import (
    ConversionError,
    FFIError,
    TaskerError,
    WorkerAlreadyRunningError,
    WorkerBootstrapError,
    WorkerNotInitializedError,
)
from tasker_core.handler import (
    HandlerRegistry,
    StepHandler,
)
from tasker_core.logging import (
    log_debug,
    log_error,
    log_info,
    log_trace,
    log_warn,
)
from tasker_core.models import (
    DependencyResultsWrapper,
    HandlerWrapper,
    StepDefinitionWrapper,
    TaskSequenceStepWrapper,
    TaskWrapper,
    WorkflowStepWrapper,
)
from tasker_core.observability import (
    get_health_check,
    get_metrics,
    get_worker_config,
)
from tasker_core.registry import (
    BaseResolver,
    ClassLookupResolver,
    ExplicitMappingResolver,
    HandlerDefinition,
    MethodDispatchWrapper,
    RegistryResolver,
    ResolutionError,
    ResolverChain,
    ResolverNotFoundError,
)
from tasker_core.step_execution_subscriber import (
    StepExecutionError,
    StepExecutionSubscriber,
)
from tasker_core.step_handler import (
    ApiHandler,
    ApiResponse,
    DecisionHandler,
)
from tasker_core.template_discovery import (
    HandlerDiscovery,
    TemplateParser,
    TemplatePath,
)
from tasker_core.types import (
    BatchAnalyzerOutcome,
    BatchWorkerContext,
    BatchWorkerOutcome,
    BootstrapConfig,
    BootstrapResult,
    ComponentHealth,
    CursorConfig,
    DecisionPointOutcome,
    DecisionType,
    DomainEventMetadata,
    ErrorType,
    ExecutionResult,
    FfiDispatchMetrics,
    FfiStepEvent,
    HealthCheck,
    InProcessDomainEvent,
    LogContext,
    ResultStatus,
    StarvationWarning,
    StepContext,
    StepError,
    StepExecutionResult,
    StepHandlerCallResult,
    StepHandlerResult,
    WorkerConfig,
    WorkerMetrics,
    WorkerState,
    WorkerStatus,
)
from tasker_core.worker import (
    Worker,
)

__all__ = [
    "ApiHandler",
    "ApiResponse",
    "AuthenticationError",
    "AuthorizationError",
    "BasePublisher",
    "BaseResolver",
    "BaseSubscriber",
    "BatchAggregationScenario",
    "BatchAnalyzerOutcome",
    "BatchWorkerConfig",
    "BatchWorkerContext",
    "BatchWorkerOutcome",
    "Batchable",
    "BootstrapConfig",
    "BootstrapResult",
    "BusinessLogicError",
    "ClassLookupResolver",
    "ClientHealthResponse",
    "ClientPaginationInfo",
    "ClientStepAuditResponse",
    "ClientStepResponse",
    "ClientTaskListResponse",
    "ClientTaskResponse",
    "ComponentHealth",
    "ConfigurationError",
    "ConversionError",
    "CursorConfig",
    "DecisionHandler",
    "DecisionPointOutcome",
    "DecisionType",
    "DependencyResultsWrapper",
    "DomainEventMetadata",
    "ErrorClassifier",
    "ErrorType",
    "EventBridge",
    "EventDeclaration",
    "EventNames",
    "EventPoller",
    "ExecutionResult",
    "ExplicitMappingResolver",
    "FFIError",
    "FfiDispatchMetrics",
    "FfiStepEvent",
    "HandlerDefinition",
    "HandlerDiscovery",
    "HandlerRegistry",
    "HandlerWrapper",
    "HealthCheck",
    "InProcessDomainEvent",
    "InProcessDomainEventPoller",
    "LogContext",
    "MethodDispatchWrapper",
    "NetworkError",
    "NotFoundError",
    "PermanentError",
    "PublishContext",
    "RateLimitError",
    "RegistryResolver",
    "ResolutionError",
    "ResolverChain",
    "ResolverNotFoundError",
    "ResourceContentionError",
    "ResultStatus",
    "RetryableError",
    "ServiceUnavailableError",
    "StarvationWarning",
    "StepContext",
    "StepDefinitionWrapper",
    "StepError",
    "StepEventContext",
    "StepExecutionError",
    "StepExecutionResult",
    "StepExecutionSubscriber",
    "StepHandler",
    "StepHandlerCallResult",
    "StepHandlerResult",
    "StepResult",
    "StepTimeoutError",
    "StepValidationError",
    "TaskSequenceStepWrapper",
    "TaskWrapper",
    "TaskerClient",
    "TaskerError",
    "TemplateParser",
    "TemplatePath",
    "Worker",
    "WorkerAlreadyRunningError",
    "WorkerBootstrapError",
    "WorkerConfig",
    "WorkerMetrics",
    "WorkerNotInitializedError",
    "WorkerState",
    "WorkerStatus",
    "WorkflowStepWrapper",
    "__version__",
    "bootstrap_worker",
    "check_starvation_warnings",
    "cleanup_timeouts",
    "complete_step_event",
    "get_classifier",
    "get_ffi_dispatch_metrics",
    "get_health_check",
    "get_metrics",
    "get_rust_version",
    "get_version",
    "get_worker_config",
    "get_worker_status",
    "health_check",
    "is_permanent",
    "is_retryable",
    "is_worker_running",
    "log_debug",
    "log_error",
    "log_info",
    "log_trace",
    "log_warn",
    "poll_in_process_events",
    "poll_step_events",
    "stop_worker",
    "transition_to_graceful_shutdown",
    "version",
]


def version() -> str:
    """Return the tasker_core version that this package is compatible with."""
    return get_version()
