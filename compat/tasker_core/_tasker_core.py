"""Functions of tasker_core's native extension, which take and return plain data.

There is no foreign-function interface: the worker runs its steps itself, so no step waits to be polled here.
"""

from __future__ import annotations

import functools
import platform
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, ParamSpec, TypeVar
from uuid import UUID

import tasker_core._runtime.bootstrap as engine
from tasker.errors import TaskerError, UsageError
from tasker.handlers.events.poller import shared
from tasker.logging import log_debug, log_error, log_info, log_trace, log_warn
from tasker.version import __version__ as engine_version
from tasker_core import observability
from tasker_core._runtime.client import calls
from tasker_core.exceptions import TaskerError as PublishedError
from tasker_core.exceptions import WorkerNotInitializedError
from tasker_core.types.worker import BootstrapConfig

__version__ = "0.1.8"
"""The tasker_core version that this package is compatible with."""

__all__ = [
    "__version__",
    "bootstrap_worker",
    "check_starvation_warnings",
    "checkpoint_yield_step_event",
    "cleanup_timeouts",
    "client_cancel_task",
    "client_create_task",
    "client_get_step",
    "client_get_step_audit_history",
    "client_get_task",
    "client_health_check",
    "client_list_task_steps",
    "client_list_tasks",
    "complete_step_event",
    "get_ffi_dispatch_metrics",
    "get_health_check",
    "get_metrics",
    "get_rust_version",
    "get_version",
    "get_worker_config",
    "get_worker_status",
    "health_check",
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
]

P = ParamSpec("P")
T = TypeVar("T")

TASK_OPTIONS = (
    "priority",
    "idempotency_key",
    "correlation_id",
    "parent_correlation_id",
    "tags",
    "run_at",
    "delay",
    "expires_in",
    "deadline",
)
"""What a task may be created with, besides `TASK_DEFAULTS`."""

TASK_DEFAULTS: dict[str, Any] = {
    "initiator": "",
    "source_system": "",
    "namespace": "default",
    "context": None,
    "version": "1.0.0",
    "reason": "Task requested",
}

NOT_RUNNING = "the worker is not initialized and not running: call bootstrap_worker() first"


def _published_errors(function: Callable[P, T]) -> Callable[P, T]:
    """Convert the engine's errors to `RuntimeError`, and invalid arguments to `ValueError`, with the error as cause."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except WorkerNotInitializedError as error:
            raise RuntimeError(NOT_RUNNING) from error
        except UsageError as error:
            raise ValueError(_text(error)) from error
        except TaskerError as error:
            raise RuntimeError(_text(error)) from error
        except PublishedError as error:
            raise RuntimeError(str(error)) from error

    return call


def _text(error: TaskerError) -> str:
    return f"{error.message} ({error.hint})" if error.hint else error.message


def get_version() -> str:
    """Return the tasker_core version that this package is compatible with."""
    return __version__


def get_rust_version() -> str:
    """Return the underlying versions, of Tasker and Python."""
    return f"tasker-engine {engine_version} (Python {platform.python_version()})"


def health_check() -> bool:
    """Return True: the module is loaded."""
    return True


@_published_errors
def bootstrap_worker(config: dict[str, Any] | None = None) -> dict[str, Any]:
    """Start the worker of this process.

    Returns `handle_id`, `status` (`started`, `already_running`), `message`, `worker_id`. Raises `RuntimeError` if the
    worker cannot start.
    """
    if engine.is_worker_running():
        running = engine.running_system().result
        return {**running.model_dump(), "status": "already_running", "message": "a worker runs in this process already"}
    result = engine.bootstrap_worker(None if config is None else BootstrapConfig.model_validate(config))
    return {**result.model_dump(), "status": "started"}


def stop_worker() -> str:
    """Stop the worker; return a message about it."""
    return engine.stop_worker()


def get_worker_status() -> dict[str, Any]:
    """Return the current status of the worker; without one only `running` and `error`."""
    if not engine.is_worker_running():
        return {"running": False, "error": NOT_RUNNING}
    return engine.get_worker_status().model_dump(mode="json")


@_published_errors
def transition_to_graceful_shutdown() -> str:
    """Stop claiming and let running steps end. Raises `RuntimeError` without a worker."""
    return engine.transition_to_graceful_shutdown()


def is_worker_running() -> bool:
    """Return True between start and stop."""
    return engine.is_worker_running()


@_published_errors
def poll_step_events() -> dict[str, Any] | None:
    """Return None: the worker runs its steps itself. Raises `RuntimeError` without a worker."""
    engine.running_system()
    return None


@_published_errors
def complete_step_event(event_id_str: str, completion_data: dict[str, Any]) -> bool:
    """Return False: no event waits for its completion.

    Raises `ValueError` for an invalid id, `RuntimeError` without a worker.
    """
    UUID(event_id_str)
    engine.running_system()
    return False


@_published_errors
def checkpoint_yield_step_event(event_id_str: str, checkpoint_data: dict[str, Any]) -> bool:
    """Return False: no event waits for a checkpoint.

    Raises `ValueError` for an invalid id, `RuntimeError` without a worker.
    """
    UUID(event_id_str)
    engine.running_system()
    return False


@_published_errors
def get_ffi_dispatch_metrics() -> dict[str, Any]:
    """Return the claimed steps that wait for a free slot. Raises `RuntimeError` without a worker."""
    return observability.waiting_steps().model_dump()


@_published_errors
def check_starvation_warnings() -> bool:
    """Return True. Raises `RuntimeError` without a worker."""
    engine.running_system()
    return True


@_published_errors
def cleanup_timeouts() -> int:
    """Return 0: the engine ends steps that exceed their timeout. Raises `RuntimeError` without a worker."""
    engine.running_system()
    return 0


@_published_errors
def poll_in_process_events() -> dict[str, Any] | None:
    """Return the oldest domain event that waits in this process. Raises `RuntimeError` without a worker."""
    engine.running_system()
    return shared.receive()


@_published_errors
def get_health_check() -> dict[str, Any]:
    """Return the worker's health. Raises `RuntimeError` without a worker."""
    return observability.get_health_check().model_dump(mode="json")


@_published_errors
def get_metrics() -> dict[str, Any]:
    """Return the worker's metrics. Raises `RuntimeError` without a worker."""
    return observability.get_metrics().model_dump(mode="json")


@_published_errors
def get_worker_config() -> dict[str, Any]:
    """Return the settings of the running worker. Raises `RuntimeError` without a worker."""
    return observability.get_worker_config().model_dump(mode="json")


@_published_errors
def client_create_task(request: dict[str, Any]) -> dict[str, Any]:
    """Create a task. Raises `RuntimeError`, and `ValueError` for an invalid request."""
    options = {**TASK_DEFAULTS, **request}
    if unknown := sorted(options.keys() - {"name", *TASK_DEFAULTS, *TASK_OPTIONS}):
        raise ValueError(f"create_task does not know {', '.join(unknown)} (expected: {', '.join(TASK_OPTIONS)})")
    if options["context"] is None:
        options["context"] = {}
    client = calls(options.pop("initiator"), options.pop("source_system"))
    return asdict(client.create_task(options.pop("name"), **options))


@_published_errors
def client_get_task(task_uuid: str) -> dict[str, Any]:
    """Return the task with its steps. Raises `RuntimeError`, `ValueError`."""
    return asdict(calls().get_task(str(UUID(task_uuid))))


@_published_errors
def client_list_tasks(
    limit: int = 50, offset: int = 0, namespace: str | None = None, status: str | None = None
) -> dict[str, Any]:
    """Return a page of tasks. Raises `RuntimeError`."""
    return asdict(calls().list_tasks(limit=limit, offset=offset, namespace=namespace, status=status))


@_published_errors
def client_cancel_task(task_uuid: str) -> dict[str, Any]:
    """Cancel a task. Raises `RuntimeError`, `ValueError`."""
    return calls().cancel_task(str(UUID(task_uuid)))


@_published_errors
def client_list_task_steps(task_uuid: str) -> list[dict[str, Any]]:
    """Return the task's steps. Raises `RuntimeError`, `ValueError`."""
    return [asdict(step) for step in calls().list_task_steps(str(UUID(task_uuid)))]


@_published_errors
def client_get_step(task_uuid: str, step_uuid: str) -> dict[str, Any]:
    """Return one step. Raises `RuntimeError`, `ValueError`."""
    return asdict(calls().get_step(str(UUID(task_uuid)), str(UUID(step_uuid))))


@_published_errors
def client_get_step_audit_history(task_uuid: str, step_uuid: str) -> list[dict[str, Any]]:
    """Return the audit of a step's stored results. Raises `RuntimeError`, `ValueError`."""
    history = calls().get_step_audit_history(str(UUID(task_uuid)), str(UUID(step_uuid)))
    return [asdict(entry) for entry in history]


@_published_errors
def client_health_check() -> dict[str, Any]:
    """Return the health of database and messaging. Raises `RuntimeError`."""
    return asdict(calls().health_check())
