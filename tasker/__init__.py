"""Tasker: durable workflows, declared in YAML and run on PostgreSQL.

The names that handlers and programs use are here, each imported from its own module when it is first asked for, so
that `import tasker` costs nothing (rule 25).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tasker.app import App as App
    from tasker.batch_processing import Batchable as Batchable
    from tasker.errors import ConversionError as ConversionError
    from tasker.errors import FFIError as FFIError
    from tasker.errors import PermanentError as PermanentError
    from tasker.errors import RetryableError as RetryableError
    from tasker.errors import StepExecutionError as StepExecutionError
    from tasker.errors import TaskerError as TaskerError
    from tasker.errors import WorkerAlreadyRunningError as WorkerAlreadyRunningError
    from tasker.errors import WorkerBootstrapError as WorkerBootstrapError
    from tasker.errors import WorkerNotInitializedError as WorkerNotInitializedError
    from tasker.handler import HandlerRegistry as HandlerRegistry
    from tasker.step_handler import ApiHandler as ApiHandler
    from tasker.step_handler import APIMixin as APIMixin
    from tasker.step_handler import BaseStepHandler as BaseStepHandler
    from tasker.step_handler import DecisionHandler as DecisionHandler
    from tasker.step_handler import DecisionMixin as DecisionMixin
    from tasker.step_handler import StepHandler as StepHandler
    from tasker.types import DecisionPointOutcome as DecisionPointOutcome
    from tasker.types import FfiStepEvent as FfiStepEvent
    from tasker.types import LogContext as LogContext
    from tasker.types import StepContext as StepContext
    from tasker.types import StepHandlerResult as StepHandlerResult

__version__ = "0.1.0"

_PUBLIC = {
    "tasker.app": ("App",),
    "tasker.batch_processing": ("Batchable",),
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
    "tasker.handler": ("HandlerRegistry",),
    "tasker.step_handler": (
        "APIMixin",
        "ApiHandler",
        "BaseStepHandler",
        "DecisionHandler",
        "DecisionMixin",
        "StepHandler",
    ),
    "tasker.types": ("DecisionPointOutcome", "FfiStepEvent", "LogContext", "StepContext", "StepHandlerResult"),
}
_HOMES = {name: module for module, names in _PUBLIC.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a public name from its home on first use (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module 'tasker' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
