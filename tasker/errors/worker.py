"""What starting and stopping a worker reports."""

from __future__ import annotations

from tasker.errors.base import TaskerError


class WorkerNotInitializedError(TaskerError, RuntimeError):
    """The call needs a running worker and there is none."""

    error_type = "worker_not_initialized"


class WorkerBootstrapError(TaskerError):
    """The worker could not start."""

    error_type = "worker_bootstrap_error"


class WorkerAlreadyRunningError(TaskerError):
    """A worker runs in this process already."""

    error_type = "worker_already_running"
