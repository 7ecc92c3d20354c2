"""Tasker: durable workflows, declared in YAML and run on PostgreSQL.

The names that handlers and programs use are here, each imported from its own module when it is first asked for, so
that `import tasker` costs nothing (rule 25).
"""

from __future__ import annotations

TYPE_CHECKING = False
"""Not imported: `typing` would take longer than all else until Ctrl-C is in our hands (see `tasker.__main__`)."""

if TYPE_CHECKING:
    from typing import Any

    from tasker.app import App as App
    from tasker.app import SyncApp as SyncApp
    from tasker.app import TaskRequester as TaskRequester
    from tasker.app import submit_in as submit_in
    from tasker.app import submit_in_async as submit_in_async
    from tasker.batch_processing import Batchable as Batchable
    from tasker.bootstrap import bootstrap_worker as bootstrap_worker
    from tasker.bootstrap import get_worker_status as get_worker_status
    from tasker.bootstrap import is_worker_running as is_worker_running
    from tasker.bootstrap import stop_worker as stop_worker
    from tasker.bootstrap import transition_to_graceful_shutdown as transition_to_graceful_shutdown
    from tasker.client import TaskerClient as TaskerClient
    from tasker.errors import ConversionError as ConversionError
    from tasker.errors import FFIError as FFIError
    from tasker.errors import PermanentError as PermanentError
    from tasker.errors import RetryableError as RetryableError
    from tasker.errors import StepExecutionError as StepExecutionError
    from tasker.errors import TaskerError as TaskerError
    from tasker.errors import WorkerAlreadyRunningError as WorkerAlreadyRunningError
    from tasker.errors import WorkerBootstrapError as WorkerBootstrapError
    from tasker.errors import WorkerNotInitializedError as WorkerNotInitializedError
    from tasker.event_bridge import EventBridge as EventBridge
    from tasker.event_bridge import EventNames as EventNames
    from tasker.handler import HandlerRegistry as HandlerRegistry
    from tasker.logging import log_debug as log_debug
    from tasker.logging import log_error as log_error
    from tasker.logging import log_info as log_info
    from tasker.logging import log_warn as log_warn
    from tasker.observability import get_health_check as get_health_check
    from tasker.observability import get_metrics as get_metrics
    from tasker.observability import get_worker_config as get_worker_config
    from tasker.step_execution_subscriber import StepExecutionSubscriber as StepExecutionSubscriber
    from tasker.step_handler import ApiHandler as ApiHandler
    from tasker.step_handler import APIMixin as APIMixin
    from tasker.step_handler import BaseStepHandler as BaseStepHandler
    from tasker.step_handler import DecisionHandler as DecisionHandler
    from tasker.step_handler import DecisionMixin as DecisionMixin
    from tasker.step_handler import StepHandler as StepHandler
    from tasker.types import BootstrapConfig as BootstrapConfig
    from tasker.types import DecisionPointOutcome as DecisionPointOutcome
    from tasker.types import FfiStepEvent as FfiStepEvent
    from tasker.types import LogContext as LogContext
    from tasker.types import StepContext as StepContext
    from tasker.types import StepHandlerResult as StepHandlerResult
    from tasker.version import __version__ as __version__
    from tasker.worker import Worker as Worker

_PUBLIC = {
    "tasker.app": ("App", "SyncApp", "TaskRequester", "submit_in", "submit_in_async"),
    "tasker.batch_processing": ("Batchable",),
    "tasker.bootstrap": (
        "bootstrap_worker",
        "get_worker_status",
        "is_worker_running",
        "stop_worker",
        "transition_to_graceful_shutdown",
    ),
    "tasker.client": ("TaskerClient",),
    "tasker.errors": (
        "ConversionError",
        "FFIError",
        "PermanentError",
        "RetryableError",
        "StepExecutionError",
        "TaskerError",
        "WorkerAlreadyRunningError",
        "WorkerBootstrapError",
        "WorkerNotInitializedError",
    ),
    "tasker.event_bridge": ("EventBridge", "EventNames"),
    "tasker.handler": ("HandlerRegistry",),
    "tasker.logging": ("log_debug", "log_error", "log_info", "log_warn"),
    "tasker.observability": ("get_health_check", "get_metrics", "get_worker_config"),
    "tasker.step_execution_subscriber": ("StepExecutionSubscriber",),
    "tasker.step_handler": (
        "APIMixin",
        "ApiHandler",
        "BaseStepHandler",
        "DecisionHandler",
        "DecisionMixin",
        "StepHandler",
    ),
    "tasker.types": (
        "BootstrapConfig",
        "DecisionPointOutcome",
        "FfiStepEvent",
        "LogContext",
        "StepContext",
        "StepHandlerResult",
    ),
    "tasker.version": ("__version__",),
    "tasker.worker": ("Worker",),
}
_HOMES = {name: module for module, names in _PUBLIC.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a public name from its home on first use (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module 'tasker' has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
