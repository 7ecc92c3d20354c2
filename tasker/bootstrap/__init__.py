"""Starting and stopping the worker of this process, under the published names.

`bootstrap_worker` makes a worker that runs: it claims steps, calls their handlers and stores their results. Nothing
else has to be started.
"""

from __future__ import annotations

import logging
import os
import threading
from uuid import uuid4

from tasker.bootstrap.system import System
from tasker.errors import TaskerError, WorkerAlreadyRunningError, WorkerBootstrapError, WorkerNotInitializedError
from tasker.types import BootstrapConfig, BootstrapResult, WorkerState, WorkerStatus

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
    """Start this process's worker: on `DATABASE_URL`, else on the configured database, else embedded.

    It serves `config.namespace`, and the namespaces of the templates in `TASKER_TEMPLATE_PATH` (or in the first usual
    folder that exists), which it registers. Handlers come from the shared `HandlerRegistry` and from the `handlers.py`
    beside each template. Raises `WorkerAlreadyRunningError`, `ConfigurationError`, `DatabaseError`, `TemplateError`;
    anything unforeseen as `WorkerBootstrapError`.
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
    """Stop the worker: steps that run are given ten seconds, then given back. Safe when none runs; says what it did."""
    global _system
    with _lock:
        system, _system = _system, None
    if system is None:
        return "no worker is running"
    system.stop()
    return f"worker {system.result.worker_id} is stopped"


def transition_to_graceful_shutdown() -> str:
    """Claim nothing more and let running steps end, ten seconds at most; `stop_worker` completes it.

    Raises `WorkerNotInitializedError`.
    """
    system = running_system()
    system.drain()
    return f"worker {system.result.worker_id} claims nothing more, and its steps have ended or were given back"


def get_worker_status() -> WorkerStatus:
    """The worker right now; `running` is False when none was started. Never raises."""
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
    """True between `bootstrap_worker` and `stop_worker`."""
    return _system is not None


def running_system() -> System:
    """The running worker with all that belongs to it. Raises `WorkerNotInitializedError`."""
    system = _system
    if system is None:
        raise WorkerNotInitializedError(
            "Worker system not running: no worker runs in this process", hint="call bootstrap_worker() first"
        )
    return system


def _level(name: str) -> int:
    levels = {"trace": logging.DEBUG, "warn": logging.WARNING}
    found = levels.get(name.lower(), logging.getLevelNamesMapping().get(name.upper()))
    if found is None:
        raise WorkerBootstrapError(
            f"log_level {name!r} is not known", hint="expected trace, debug, info, warn, error or critical"
        )
    return found
