"""Errors of the worker. They are separate from the errors that a handler raises to fail its attempt."""

from __future__ import annotations

__all__ = [
    "ConversionError",
    "FFIError",
    "TaskerError",
    "WorkerAlreadyRunningError",
    "WorkerBootstrapError",
    "WorkerNotInitializedError",
]


class TaskerError(Exception):
    """Base class of these errors; `tasker_core.errors.TaskerError` is that of the handlers' errors."""


class WorkerNotInitializedError(TaskerError, RuntimeError):
    """Error for a call that needs a running worker."""


class WorkerBootstrapError(TaskerError):
    """Error for a worker that could not start."""


class WorkerAlreadyRunningError(TaskerError):
    """Error for a second worker in this process."""


class FFIError(TaskerError):
    """Error kept for code that catches it; there is no foreign-function interface here."""


class ConversionError(TaskerError):
    """Error for a value that could not be converted to the requested type."""
