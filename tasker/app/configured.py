"""Configuration of a process: which tables of the settings its components take, and what follows from several of them.

`UNCONFIGURED` contains the values without any file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tasker.dataclasses import dataclass
from tasker.engine.expansion.choices import ExpansionLimits
from tasker.engine.fleet_rules import FleetRules
from tasker.engine.named_limits import NamedLimitNumbers, NamedLimits
from tasker.errors import UsageError
from tasker.execution.settings import WorkerSettings
from tasker.installed import backend_variables
from tasker.json_values import VALUE_LIMIT_BYTES
from tasker.messaging.listening_modes import ORCHESTRATOR_EVENTS, DeploymentMode, EventSettings
from tasker.messaging.queues import QueueNames
from tasker.orchestration.sweep import SweepSettings
from tasker.plugins.found import PluginChoice, exclude_plugins, installed, load
from tasker.resilience.breakers import BreakerPolicies
from tasker.settings.addresses import DEFAULT_BACKEND, BackendSettings
from tasker.settings.approvals import Approvals
from tasker.settings.database import Database
from tasker.settings.execution import TaskTemplates
from tasker.settings.hooks import IncomingHook
from tasker.settings.http import OrchestrationWeb, WorkerWeb
from tasker.settings.queues import DepthThresholds
from tasker.settings.table import NamedTables
from tasker.settings.tenants import TenantQuota
from tasker.template.plan import BreakerPolicy, RetryPolicy
from tasker.template.rates import default_burst, parse_rate

if TYPE_CHECKING:
    from tasker.resources.tables import ResourceTables
    from tasker.settings.breakers import BreakerThresholds, ReadinessThresholds
    from tasker.settings.execution import NamedLimit
    from tasker.settings.model import Settings
    from tasker.settings.table import Table

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


SINGLE_PROCESS_DEPTH = DepthThresholds.for_single_process()
"""Limits of a single process that submits and works: waiting tasks are in the database and block no other process."""


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
    depth_limits: DepthThresholds = SINGLE_PROCESS_DEPTH
    """Depths at which new tasks are refused."""
    importable: tuple[str, ...] = ("*",)
    """Paths that templates may import in addition to registered and discovered handlers."""
    namespaces: tuple[str, ...] = ()
    """Namespaces of a worker whose command line names none; empty: those of its templates."""
    hooks: Mapping[str, IncomingHook] = NamedTables()
    """Hooks of the server that receive requests of other systems."""
    tenants: Mapping[str, TenantQuota] = NamedTables()
    """Quotas of tenants."""
    approvals: Approvals = Approvals()
    """Signed links with which persons decide."""
    http: OrchestrationWeb = OrchestrationWeb.for_single_process()
    worker_port: WorkerWeb = WorkerWeb.for_single_process()
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
    made = configured(configuration.settings, configuration.backends, configuration.resources)
    limits = replace(made.worker.named_limits, changed_at=configuration.changed_at)
    made = replace(made, origin=configuration.origin, worker=replace(made.worker, named_limits=limits))
    # without a file there are no fleet defaults, so those of registered templates apply
    return made if any(environ.get(name) for name in FILE_VARIABLES) else replace(made, retry=None)


def _plugins_have_settings() -> bool:
    """Return whether a plugin that is enabled by default has settings, which variables might supply."""
    exclude_plugins(())
    return any("tasker_settings" in load(plugin).hooks for plugin in installed() if not plugin.optional)


def configured(
    settings: Settings,
    backends: Mapping[str, BackendSettings] = MappingProxyType({}),
    resources: ResourceTables | None = None,
) -> Configured:
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
        worker=replace(worker_settings(settings), resources=resources),
        orchestrator_events=orchestrator_events(settings),
        namespaces=settings.worker.event_systems.worker.metadata.fallback_poller.supported_namespaces,
        importable=settings.worker.handlers.allow,
        hooks=settings.hooks,
        search_paths=settings.common.task_templates.search_paths,
        tenants=settings.tenants,
        approvals=common.approvals,
        http=settings.orchestration.web,
        worker_port=settings.worker.web,
        log_format=common.log.format,
        shutdown_seconds=settings.orchestration.shutdown_timeout_ms / 1000,
        sweeps=sweep_settings(settings),
        context_limit_bytes=common.execution.context_limit_bytes,
        retry=retry_policy(settings),
        breakers=breaker_policies(settings),
        depth_limits=settings.common.queues.queue_depth_thresholds,
        plugins=plugin_choice(settings),
        backend_settings=backend_settings(settings, backends),
        settings=settings,
    )


def template_environment(settings: Settings) -> str | None:
    """Return the environment whose overrides apply to templates, or None if none is set explicitly."""
    execution = settings.common.execution
    return execution.environment if execution.is_set("environment") else None


def sweep_settings(settings: Settings) -> SweepSettings:
    """Return the tables that a sweep reads."""
    common, orchestration = settings.common, settings.orchestration
    return SweepSettings(
        ages=common.sweep,
        timing=orchestration.event_systems.task_readiness.timing,
        bursts=common.failure_storm,
        dead_letters=orchestration.dlq,
        batches=orchestration.batch_processing,
        retention=common.retention,
    )


def rules(settings: Settings) -> FleetRules:
    """Return the settings on which all processes that advance tasks must agree."""
    orchestration = settings.orchestration
    return FleetRules(
        execution=settings.common.execution,
        limits=ExpansionLimits(orchestration.decision_points, orchestration.batch_processing),
        hidden_seconds=float(settings.common.queues.default_visibility_timeout_seconds),
        dead_letters=orchestration.dlq,
    )


def retry_policy(settings: Settings) -> RetryPolicy:
    """Return the policy of steps whose template has no retry settings."""
    backoff = settings.common.backoff
    return RetryPolicy(
        max_backoff_ms=backoff.max_backoff_seconds * 1000,
        multiplier=backoff.backoff_multiplier,
        delays_ms=tuple(seconds * 1000 for seconds in backoff.default_backoff_seconds),
        jitter=backoff.jitter_max_percentage if backoff.jitter_enabled else 0.0,
    )


def worker_settings(settings: Settings) -> WorkerSettings:
    """Return the tables that a worker reads."""
    common, worker = settings.common, settings.worker
    return WorkerSettings(
        dispatch=worker.mpsc_channels.handler_dispatch,
        hand_off=worker.mpsc_channels.ffi_dispatch,
        execution=worker.execution,
        lease=worker.lease,
        limits=common.execution,
        overflow=common.mpsc_channels.overflow_policy,
        domain_events=worker.mpsc_channels.domain_events,
        subscribers=worker.mpsc_channels.in_process_events,
        seen_events=worker.event_systems.worker.metadata.in_process_events,
        events=worker_events(settings),
        rules=rules(settings),
        depth_limits=common.queues.queue_depth_thresholds,
        tenants=settings.tenants,
        tags=frozenset(worker.tags),
        named_limits=named_limits(settings),
        name=worker.worker_id if worker.is_set("worker_id") else None,
    )


def named_limits(settings: Settings) -> NamedLimits:
    """Return the limits that templates name."""
    return NamedLimits(tuple(_numbers(name, limit) for name, limit in settings.limits.items()))


def _numbers(name: str, limit: NamedLimit) -> NamedLimitNumbers:
    rate = parse_rate(limit.rate) if limit.rate else None
    burst = None if rate is None else float(limit.burst or default_burst(rate))
    return NamedLimitNumbers(name, limit.concurrency or None, rate, burst)


def worker_events(settings: Settings) -> EventSettings:
    """Return how a worker learns of steps."""
    system = settings.worker.event_systems.worker
    return EventSettings(
        system_id=system.system_id,
        deployment_mode=DeploymentMode(system.deployment_mode),
        poll_ms=system.metadata.fallback_poller.polling_interval_ms,
        listener=system.metadata.listener,
        health_check_interval_seconds=system.timing.health_check_interval_seconds,
        health=system.health,
        **_common(settings),
    )


def orchestrator_events(settings: Settings) -> EventSettings:
    """Return how an orchestrator learns of results."""
    system = settings.orchestration.event_systems.orchestration
    return EventSettings(
        system_id=system.system_id,
        deployment_mode=DeploymentMode(system.deployment_mode),
        poll_ms=system.timing.fallback_polling_interval_seconds * 1000,
        health_check_interval_seconds=system.timing.health_check_interval_seconds,
        health=system.health,
        **_common(settings),
    )


def _common(settings: Settings) -> dict[str, Any]:
    return {
        "lost_poll_ms": settings.common.queues.poll_interval_ms,
        "listen_url": settings.common.database.listen_url or None,
    }


def breaker_policies(settings: Settings) -> BreakerPolicies:
    """Return the policies of a process's breakers."""
    breakers, storing = settings.common.circuit_breakers, settings.worker.circuit_breakers.ffi_completion_send
    components = breakers.component_configs
    return BreakerPolicies(
        messaging=_policy(components.messaging),
        database=_policy(components.web),
        task_readiness=_policy(components.task_readiness),
        completion=BreakerPolicy(
            storing.failure_threshold, storing.recovery_timeout_seconds, storing.success_threshold
        ),
        slow_completion_ms=storing.slow_send_threshold_ms,
        settle_seconds=breakers.global_settings.min_state_transition_interval_seconds,
    )


def _policy(own: BreakerThresholds | ReadinessThresholds) -> BreakerPolicy:
    """Return the breaker policy of a component: its own setting, else the common one, else its default."""
    return BreakerPolicy(own.failure_threshold, own.timeout_seconds, own.success_threshold)


def queue_names(settings: Settings) -> QueueNames:
    queues = settings.common.queues.orchestration_queues
    return QueueNames(queues.task_requests, queues.step_results, queues.task_finalizations)


def backend_settings(settings: Settings, others: Mapping[str, BackendSettings]) -> dict[str, BackendSettings]:
    """Return the settings that are set for each backend; others are the backend's own defaults.

    `others` are backends without a model. The engine reads settings that override common ones; they are not passed to
    the backend.
    """
    tables = settings.common.queues.tables()
    known = {name: values for name, table in tables.items() if (values := _backend_settings(table))}
    return {**known, **others}


def _backend_settings(table: Table) -> BackendSettings:
    from tasker.settings.installed_tables import overruling
    from tasker.settings.nested import leaves, nested

    read_here = overruling(type(table))
    entries = leaves(table.to_dict(only_set=True))
    return nested({path: value for path, value in entries if path not in read_here})


def plugin_choice(settings: Settings) -> PluginChoice:
    """Return the enabled and disabled plugins, and the plugin tables that contain settings."""
    plugins = settings.plugins
    tables = {name: table for name, table in plugins.tables().items() if table.to_dict(only_set=True)}
    return PluginChoice(plugins.enabled, plugins.disabled, tables)


def configured_program(
    database_url: str | None,
    data_dir: str | Path | None,
    given: Configured | None,
    max_connections: int | None = None,
    *,
    environ: Mapping[str, str] = os.environ,
) -> Configured:
    """Return the given configuration or that of the environment, with the database of the arguments.

    `data_dir` selects the embedded database, `max_connections` is the size of the pool. Raises `UsageError` for two
    databases, `ConfigurationError`, and `ConfigurationInvalid` with all problems.
    """
    from tasker.app.preparation import (
        not_empty,  # lazy import: commands that only read the configuration need no database
    )

    named = not_empty(database_url)
    if named and data_dir:
        raise UsageError("data_dir is for the embedded database, and database_url names another one")
    if given is not None:
        url = given.database_url
    else:
        given = from_environment(environ=environ)
        url = environ.get("DATABASE_URL") or given.database_url
    return replace(_with_pool_size(given, max_connections), database_url=None if data_dir else named or url)


def _with_pool_size(configuration: Configured, max_connections: int | None) -> Configured:
    if max_connections is None:
        return configuration
    if max_connections < 1:
        raise UsageError(f"max_connections: expected 1 or more, got {max_connections}")
    database = configuration.database
    pool = database.pool.replace(max_connections=max_connections, min_connections=1)
    return replace(configuration, database=database.replace(pool=pool))
