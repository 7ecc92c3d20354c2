"""Starting and stopping the worker of this process.

The worker claims steps, calls their handlers and stores their results; nothing else has to be started.
"""

from __future__ import annotations

from tasker_core import _tasker_core as native
from tasker_core.types.worker import BootstrapConfig, BootstrapResult, WorkerStatus

__all__ = [
    "bootstrap_worker",
    "get_worker_status",
    "is_worker_running",
    "stop_worker",
    "transition_to_graceful_shutdown",
]


def bootstrap_worker(config: BootstrapConfig | None = None) -> BootstrapResult:
    """Start the worker.

    `success` is False if one is running already. Raises `RuntimeError` if the worker cannot start.
    """
    result = native.bootstrap_worker(config.model_dump() if config else None)
    return BootstrapResult(
        success=result["status"] == "started",
        handle_id=result["handle_id"],
        worker_id=result["worker_id"],
        status=result["status"],
        message=result.get("message"),
    )


def stop_worker() -> str:
    """Stop the worker if one is running; return a message about it."""
    return native.stop_worker()


def get_worker_status() -> WorkerStatus:
    """Return the current status of the worker; without one `running` is False and `error` says so."""
    return WorkerStatus.model_validate(native.get_worker_status())


def transition_to_graceful_shutdown() -> str:
    """Stop claiming and let running steps end. Raises `RuntimeError` without a worker."""
    return native.transition_to_graceful_shutdown()


def is_worker_running() -> bool:
    """Return True between start and stop."""
    return native.is_worker_running()
