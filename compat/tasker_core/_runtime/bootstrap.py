"""Start, stop and state of the worker of this process.

`bootstrap_worker` starts a worker that claims steps, calls their handlers and stores their results. No other component
has to be started.
"""

from __future__ import annotations

import logging
import os
import threading
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING
from uuid import uuid4

from tasker.app.configured import Configured, from_environment
from tasker.app.sync_app import SyncApp
from tasker.dataclasses import dataclass
from tasker.errors import TaskerError
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.plugins.contributions import rules_of
from tasker.plugins.host import plugins_of
from tasker.process.observed import ProcessSnapshot
from tasker.process.status import observed_worker
from tasker.services.workflows.files import find_templates, load_workflows
from tasker.services.workflows.handlers import load_neighbouring_handlers
from tasker.settings.execution import Execution
from tasker.template.plan import Plan
from tasker_core._runtime.announcer import ObservedRunner, StepAnnouncer
from tasker_core.event_bridge import EventBridge
from tasker_core.exceptions import WorkerAlreadyRunningError, WorkerBootstrapError, WorkerNotInitializedError
from tasker_core.template_discovery import TemplatePath, usual_folder
from tasker_core.types.worker import BootstrapConfig, BootstrapResult, WorkerState, WorkerStatus

if TYPE_CHECKING:
    from tasker.process.runtime import Runtime

LEVELS = {
    "trace": logging.DEBUG,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
}

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
            raise WorkerAlreadyRunningError("a worker runs in this process already: call stop_worker() first")
        logging.getLogger("tasker").setLevel(LEVELS[config.log_level])
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
            "Worker system not running: no worker runs in this process, call bootstrap_worker() first"
        )
    return system


@dataclass(slots=True)
class System:
    """Running worker. Create it with `start`."""

    app: SyncApp
    announcer: StepAnnouncer
    result: BootstrapResult
    configured: Configured
    observed: ProcessSnapshot
    draining: bool = field(default=False, init=False)

    @classmethod
    def start(cls, config: BootstrapConfig, *, handle_id: str) -> System:
        """Start a worker for this configuration. Raises the errors of `App.start` and of loading templates."""
        configured = _configured(config)
        announcer = StepAnnouncer(EventBridge.instance())
        registry = HandlerRegistry.instance()
        registry.allow_imports(configured.importable)
        app = SyncApp(
            os.environ.get("DATABASE_URL") or None,
            configuration=configured,
            registry=registry,
            runner=partial(ObservedRunner, observer=announcer),
        )
        app.start()
        try:
            plans = _register_templates(app, configured)
            observed = observed_worker(_runtime(app), registry, plans)
            system = cls(app, announcer, _result(config, app, handle_id), configured, observed)
            announcer.start(system.result.worker_id)
            for namespace in sorted({config.namespace, *(plan.namespace for plan in plans)}):
                app.wait_for(system.runtime.serve(namespace))
        except BaseException:
            announcer.stop()
            app.stop()
            raise
        return system

    @property
    def runtime(self) -> Runtime:
        return _runtime(self.app)

    @property
    def namespaces(self) -> list[str]:
        return list(self.runtime.namespaces)

    @property
    def environment(self) -> str:
        """Environment that the process runs in: `TASKER_ENV`, else development."""
        return os.environ.get("TASKER_ENV") or Execution.environment

    def drain(self) -> None:
        """Stop claiming. Returns once running steps have ended or were released."""
        self.draining = True
        self.app.stop_working()

    def stop(self) -> None:
        self.app.stop()
        self.announcer.stop()


def _runtime(app: SyncApp) -> Runtime:
    runtime = app.original.runtime
    if runtime is None:
        raise WorkerNotInitializedError("this app runs no worker")
    return runtime


def _configured(config: BootstrapConfig) -> Configured:
    named = {"TASKER_CONFIG_PATH": config.config_path} if config.config_path else {}
    return from_environment(environ={**os.environ, **named})


def _result(config: BootstrapConfig, app: SyncApp, handle_id: str) -> BootstrapResult:
    runtime = app.original.runtime
    identity = runtime.worker.identity if runtime else ""
    return BootstrapResult(
        success=True,
        handle_id=handle_id,
        worker_id=config.worker_id or identity,
        status=WorkerState.RUNNING,
        message=f"worker {identity} runs",
    )


def _register_templates(app: SyncApp, configured: Configured) -> list[Plan]:
    """Register the templates of the default folder, load the handlers beside them, and return the compiled plans."""
    folder = usual_folder()
    plans, rules = [], rules_of(plugins_of(configured.plugins))
    for file in find_templates(folder) if folder and TemplatePath.discover_template_files(folder) else []:
        workflows = load_workflows(file, configured.environment, rules)
        load_neighbouring_handlers(app.original.registry, workflows)
        for workflow in workflows:
            app.plans.register(workflow.plan)
            plans.append(workflow.plan)
    return plans
