"""The errors of the worker, a tree of their own: none of them is one that a handler raises to say how it failed."""

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
    """The root of this tree; `tasker_core.errors.TaskerError` is the root of the handlers'."""


class WorkerNotInitializedError(TaskerError):
    """The call needs a running worker and there is none."""


class WorkerBootstrapError(TaskerError):
    """The worker could not start."""


class WorkerAlreadyRunningError(TaskerError):
    """A worker runs in this process already."""


class FFIError(TaskerError):
    """Kept for code that catches it; nothing here crosses a foreign-function border."""


class ConversionError(TaskerError):
    """A value could not be turned into the type that was asked for."""
