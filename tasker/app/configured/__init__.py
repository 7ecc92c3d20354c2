"""Conversion of settings to the objects that the code uses, one function per object, in modules by topic.

`UNCONFIGURED` contains the values without any file; creating it does not import the settings' models.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from tasker.app.configured.engine import retry_policy, sweep_settings
from tasker.app.configured.events import orchestrator_events
from tasker.app.configured.messaging import backend_settings, queue_names
from tasker.app.configured.plugins import plugin_choice
from tasker.app.configured.resilience import SINGLE_PROCESS_DEPTH, breaker_policies, depth_limits
from tasker.app.configured.templates import template_environment
from tasker.app.configured.worker import worker_settings
from tasker.dataclasses import dataclass
from tasker.execution.settings import WorkerSettings
from tasker.installed import backend_variables
from tasker.json_values import VALUE_LIMIT_BYTES
from tasker.messaging.listening_modes import ORCHESTRATOR_EVENTS, EventSettings
from tasker.messaging.queues import QueueNames
from tasker.orchestration.sweep import SweepSettings
from tasker.plugins.found import PluginChoice, exclude_plugins, installed, load
from tasker.resilience.breakers import BreakerPolicies
from tasker.resilience.pressure import DepthLimits
from tasker.settings.addresses import DEFAULT_BACKEND, BackendSettings
from tasker.settings.database import Database
from tasker.settings.execution import TaskTemplates
from tasker.settings.http import OrchestrationWeb, WorkerWeb
from tasker.template.plan import RetryPolicy

if TYPE_CHECKING:
    from tasker.settings.model import Settings

FILE_VARIABLES = ("TASKER_CONFIG_PATH", "TASKER_CONFIG_ROOT")
VALUE_VARIABLES = (
    "DATABASE_LISTEN_URL",
    "TASKER_DEPLOYMENT_MODE",
    "TASKER_ENV",
    "TASKER_JWT_PUBLIC_KEY",
    "TASKER_JWT_PUBLIC_KEY_PATH",
    "TASKER_LOG_FORMAT",
    "TASKER_MESSAGING_BACKEND",
    "TASKER_PLUGINS_DISABLED",
    "TASKER_PLUGINS_ENABLED",
    "TASKER_WEB_BIND_ADDRESS",
    "TASKER_WORKER_WEB_BIND_ADDRESS",
    "WORKER_NAMESPACES",
)
"""Variables that supply a value even without a file; messaging backends have further ones (`value_variables`).

Those of plugins apply only if the plugin is enabled.
"""


@dataclass(frozen=True, slots=True)
class Configured:
    """Configuration of a process. `database_url` None: the embedded server; `environment` None: no overrides."""

    database_url: str | None = None
    database: Database = Database.for_single_process()
    backend: str = DEFAULT_BACKEND
    environment: str | None = None
    queue_names: QueueNames = field(default_factory=QueueNames)
    worker: WorkerSettings = field(default_factory=WorkerSettings)
    orchestrator_events: EventSettings = ORCHESTRATOR_EVENTS
    sweeps: SweepSettings = field(default_factory=SweepSettings)
    context_limit_bytes: int = VALUE_LIMIT_BYTES
    retry: RetryPolicy | None = None
    """Policy of steps whose template has no retry settings; None: that of the registered template."""
    breakers: BreakerPolicies = field(default_factory=BreakerPolicies)
    depth_limits: DepthLimits = SINGLE_PROCESS_DEPTH
    """Depths at which new tasks are refused."""
    importable: tuple[str, ...] = ("*",)
    """Paths that templates may import in addition to registered and discovered handlers."""
    namespaces: tuple[str, ...] = ()
    """Namespaces of a worker whose command line names none; empty: those of its templates."""
    http: OrchestrationWeb = OrchestrationWeb()
    worker_port: WorkerWeb = WorkerWeb()
    """HTTP port of each worker."""
    search_paths: tuple[str, ...] = TaskTemplates.search_paths
    """Patterns of template files for a worker whose command line names none."""
    log_format: str = "text"
    """Format of the log: `text` or `json`."""
    shutdown_seconds: float = 30.0
    """Time limit of an orderly stop of a worker or orchestrator."""
    plugins: PluginChoice = field(default_factory=PluginChoice)
    """Enabled plugins with their settings."""
    backend_settings: Mapping[str, BackendSettings] = field(default_factory=dict)
    """Settings of each messaging backend by name."""
    settings: Settings | None = field(default=None, compare=False, repr=False)
    """Settings that this configuration was created from; None without a configuration."""
    origin: Callable[[str], str] = field(default=lambda path: "default", compare=False, repr=False)
    """Returns the file, line or variable that set a parameter."""


UNCONFIGURED = Configured()


def value_variables() -> tuple[str, ...]:
    """Return `VALUE_VARIABLES` and the variables that the installed messaging backends name."""
    return (*VALUE_VARIABLES, *sorted(backend_variables()))


def from_environment(context: str = "complete", environ: Mapping[str, str] = os.environ) -> Configured:
    """Return the configuration from files and environment variables; `UNCONFIGURED` for a single process without any.

    `DATABASE_URL` alone does not count: the command line reads it itself. Raises `ConfigurationError`, and
    `ConfigurationInvalid` with all problems.
    """
    values = value_variables()
    names = (*FILE_VARIABLES, *values, *(f"{name}_FILE" for name in ("DATABASE_URL", *values)))
    if context == "complete" and not any(environ.get(name) for name in names) and not _plugins_have_settings():
        return UNCONFIGURED
    from tasker.services.configuration.loading import load

    configuration = load(context, environ)
    made = replace(configured(configuration.settings, configuration.backends), origin=configuration.origin)
    # without a file there are no fleet defaults, so those of registered templates apply
    return made if any(environ.get(name) for name in FILE_VARIABLES) else replace(made, retry=None)


def _plugins_have_settings() -> bool:
    """Return whether a plugin that is enabled by default has settings, which variables might supply."""
    exclude_plugins(())
    return any("tasker_settings" in load(plugin).hooks for plugin in installed() if not plugin.optional)


def configured(settings: Settings, backends: Mapping[str, BackendSettings] = MappingProxyType({})) -> Configured:
    """Return the configuration of a process. `backends` are tables of messaging backends that have no model."""
    from tasker.settings.inherited import resolved

    settings = resolved(settings).settings
    common = settings.common
    return Configured(
        database_url=common.database.url or None,
        database=common.database,
        backend=common.queues.backend,
        environment=template_environment(settings),
        queue_names=queue_names(settings),
        worker=worker_settings(settings),
        orchestrator_events=orchestrator_events(settings),
        namespaces=settings.worker.event_systems.worker.metadata.fallback_poller.supported_namespaces,
        importable=settings.worker.handlers.allow,
        search_paths=settings.common.task_templates.search_paths,
        http=settings.orchestration.web,
        worker_port=settings.worker.web,
        log_format=common.log.format,
        shutdown_seconds=settings.orchestration.shutdown_timeout_ms / 1000,
        sweeps=sweep_settings(settings),
        context_limit_bytes=common.execution.context_limit_bytes,
        retry=retry_policy(settings),
        breakers=breaker_policies(settings),
        depth_limits=depth_limits(settings),
        plugins=plugin_choice(settings),
        backend_settings=backend_settings(settings, backends),
        settings=settings,
    )
