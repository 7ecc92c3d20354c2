"""Start and stop of the worker of this process, under their public names.

`bootstrap_worker` starts a worker that claims steps, calls their handlers and stores their results. No other component
has to be started.
"""

from __future__ import annotations

import logging
import os
import threading
from uuid import uuid4

from tasker.bootstrap.system import System
from tasker.errors import TaskerError, WorkerAlreadyRunningError, WorkerBootstrapError, WorkerNotInitializedError
from tasker.handlers.worker_models import BootstrapConfig, BootstrapResult, WorkerState, WorkerStatus

__all__ = [
    "bootstrap_worker",
    "get_worker_status",
    "is_worker_running",
    "running_system",
    "stop_worker",
    "transition_to_graceful_shutdown",
]

_lock = threading.Lock()
_system: System | None = None


def bootstrap_worker(config: BootstrapConfig | None = None) -> BootstrapResult:
    """Start this process's worker on `DATABASE_URL`, else on the configured database, else on an embedded one.

    The worker serves `config.namespace`, and the namespaces of the templates in `TASKER_TEMPLATE_PATH` (or in the first
    default folder that exists), which it registers. Handlers come from the shared `HandlerRegistry` and from the
    `handlers.py` beside each template. Raises `WorkerAlreadyRunningError`, `ConfigurationError`, `DatabaseError`,
    `TemplateError`, and `WorkerBootstrapError` for any other exception.
    """
    global _system
    config = config or BootstrapConfig(namespace=os.environ.get("TASKER_NAMESPACE") or "default")
    with _lock:
        if _system is not None:
            raise WorkerAlreadyRunningError("a worker runs in this process already", hint="call stop_worker() first")
        logging.getLogger("tasker").setLevel(_level(config.log_level))
        try:
            _system = System.start(config, handle_id=str(uuid4()))
        except TaskerError:
            raise
        except Exception as error:
            raise WorkerBootstrapError(f"the worker could not start: {error!r}") from error
        return _system.result


def stop_worker() -> str:
    """Stop the worker and return a message; does nothing if no worker runs.

    Running steps get ten seconds, then they are released.
    """
    global _system
    with _lock:
        system, _system = _system, None
    if system is None:
        return "no worker is running"
    system.stop()
    return f"worker {system.result.worker_id} is stopped"


def transition_to_graceful_shutdown() -> str:
    """Stop claiming and let running steps finish, for at most ten seconds; `stop_worker` completes the shutdown.

    Returns a message. Raises `WorkerNotInitializedError`.
    """
    system = running_system()
    system.drain()
    return f"worker {system.result.worker_id} claims nothing more, and its steps have ended or were given back"


def get_worker_status() -> WorkerStatus:
    """Return the current status of the worker; `running` is False if none was started. Never raises."""
    system = _system
    if system is None:
        return WorkerStatus(running=False, worker_core_status=WorkerState.STOPPED)
    return WorkerStatus(
        running=True,
        environment=system.environment,
        worker_core_status=WorkerState.SHUTTING_DOWN if system.draining else WorkerState.RUNNING,
        web_api_enabled=False,
        supported_namespaces=system.namespaces,
    )


def is_worker_running() -> bool:
    """Return True between `bootstrap_worker` and `stop_worker`."""
    return _system is not None


def running_system() -> System:
    """Return the running worker and its components. Raises `WorkerNotInitializedError`."""
    system = _system
    if system is None:
        raise WorkerNotInitializedError(
            "Worker system not running: no worker runs in this process", hint="call bootstrap_worker() first"
        )
    return system


def _level(name: str) -> int:
    levels = {"trace": logging.DEBUG, "warn": logging.WARNING}
    level = levels.get(name.lower(), logging.getLevelNamesMapping().get(name.upper()))
    if level is None:
        raise WorkerBootstrapError(
            f"log_level {name!r} is not known", hint="expected trace, debug, info, warn, error or critical"
        )
    return level
