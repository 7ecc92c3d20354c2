"""Errors of starting and stopping a worker."""

from __future__ import annotations

from tasker.errors.base import TaskerError


class WorkerNotInitializedError(TaskerError, RuntimeError):
    """Error raised if the call needs a running worker and there is none."""

    error_type = "worker_not_initialized"


class WorkerBootstrapError(TaskerError):
    """Error raised if the worker could not start."""

    error_type = "worker_bootstrap_error"


class WorkerAlreadyRunningError(TaskerError):
    """Error raised if a worker is already running in this process."""

    error_type = "worker_already_running"
