"""Components of a process with a worker: the app and its observers."""

from __future__ import annotations

import os
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tasker.app.configured import Configured, from_environment
from tasker.app.sync_app import SyncApp
from tasker.bootstrap.announcer import StepAnnouncer
from tasker.dataclasses import dataclass
from tasker.errors import WorkerNotInitializedError
from tasker.event_bridge import EventBridge
from tasker.execution.attempt.observed import ObservedRunner
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.handlers.worker_models import BootstrapConfig, BootstrapResult, WorkerState
from tasker.plugins.contributions import rules_of
from tasker.plugins.host import plugins_of
from tasker.process.observed import ProcessSnapshot
from tasker.process.status import observed_worker
from tasker.services.workflows.files import find_templates, load_workflows
from tasker.services.workflows.handlers import load_neighbouring_handlers
from tasker.settings.execution import Execution
from tasker.template.plan import Plan
from tasker.template_discovery import TemplatePath

if TYPE_CHECKING:
    from tasker.process.runtime import Runtime


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
    folder = TemplatePath.find_template_config_directory()
    plans, rules = [], rules_of(plugins_of(configured.plugins))
    for file in find_templates(folder) if folder and _has_templates(folder) else []:
        workflows = load_workflows(file, configured.environment, rules)
        load_neighbouring_handlers(app.original.registry, workflows)
        for workflow in workflows:
            app.plans.register(workflow.plan)
            plans.append(workflow.plan)
    return plans


def _has_templates(folder: Path) -> bool:
    return bool(TemplatePath.discover_template_files(folder))
