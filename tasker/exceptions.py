"""Errors of the worker under their public import path; the same classes as in `tasker.errors`."""

from __future__ import annotations

from tasker.errors import (
    ConversionError,
    FFIError,
    TaskerError,
    WorkerAlreadyRunningError,
    WorkerBootstrapError,
    WorkerNotInitializedError,
)

__all__ = [
    "ConversionError",
    "FFIError",
    "TaskerError",
    "WorkerAlreadyRunningError",
    "WorkerBootstrapError",
    "WorkerNotInitializedError",
]
