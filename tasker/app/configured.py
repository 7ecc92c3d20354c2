"""The one seam between settings and the code: a function for each object that the code takes.

`UNCONFIGURED` is what counts without any file; it costs nothing, because the settings' models are not imported for it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tasker.app.bootstrap import DEFAULT_BACKEND
from tasker.contracts.messaging import BackendSettings
from tasker.contracts.plan import RetryPolicy
from tasker.execution.settings import WorkerSettings
from tasker.lifecycle.choices import Limits
from tasker.messaging.queues import QueueNames
from tasker.orchestration.sweep import SweepSettings
from tasker.services.engine import Rules
from tasker.services.submission import CONTEXT_LIMIT_BYTES

if TYPE_CHECKING:
    from tasker.settings.model import Settings

FILE_VARIABLES = ("TASKER_CONFIG_PATH", "TASKER_CONFIG_ROOT")
VALUE_VARIABLES = ("RABBITMQ_URL", "TASKER_ENV", "TASKER_MESSAGING_BACKEND")
"""Variables that give a value even where there is no file."""


@dataclass(frozen=True, slots=True)
class Configured:
    """What a process is made with. `database_url` None is the embedded server, `environment` None no overrides."""

    database_url: str | None = None
    backend: str = DEFAULT_BACKEND
    environment: str | None = None
    queue_names: QueueNames = field(default_factory=QueueNames)
    worker: WorkerSettings = field(default_factory=WorkerSettings)
    sweeps: SweepSettings = field(default_factory=SweepSettings)
    context_limit_bytes: int = CONTEXT_LIMIT_BYTES
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    """The policy of steps whose template says nothing about retries."""
    backend_settings: Mapping[str, BackendSettings] = field(default_factory=dict)
    """What each messaging backend is made with, by its name."""


UNCONFIGURED = Configured()


def from_environment(context: str = "complete", environ: Mapping[str, str] = os.environ) -> Configured:
    """What the file and the variables of the environment say; `UNCONFIGURED` for a single process without any.

    `DATABASE_URL` alone does not count: the command line and `App` take it by themselves. Raises `ConfigurationError`,
    and `ConfigurationInvalid` with every problem.
    """
    names = (*FILE_VARIABLES, *VALUE_VARIABLES, *(f"{name}_FILE" for name in ("DATABASE_URL", *VALUE_VARIABLES)))
    if context == "complete" and not any(environ.get(name) for name in names):
        return UNCONFIGURED
    from tasker.services.configuration import load

    return configured(load(context, environ).settings)


def configured(settings: Settings) -> Configured:
    """Everything that a process is made with."""
    common = settings.common
    return Configured(
        database_url=common.database.url or None,
        backend=common.queues.backend,
        environment=template_environment(settings),
        queue_names=queue_names(settings),
        worker=worker_settings(settings),
        sweeps=sweep_settings(settings),
        context_limit_bytes=common.execution.context_limit_bytes,
        retry=retry_policy(settings),
        backend_settings=backend_settings(settings),
    )


def worker_settings(settings: Settings) -> WorkerSettings:
    """Limits and times of a worker."""
    common, worker = settings.common.execution, settings.worker
    dispatch = worker.mpsc_channels.handler_dispatch
    return WorkerSettings(
        concurrency=dispatch.max_concurrent_handlers,
        threads=worker.execution.threads,
        window=common.enqueue_window,
        timeout_ms=dispatch.handler_timeout_ms,
        grace_ms=worker.lease.grace_ms,
        lease_ms=worker.lease.lease_ms,
        result_path=worker.execution.result_path,
        poll_ms=poll_ms(settings),
        result_limit_bytes=common.result_limit_bytes,
        rules=rules(settings),
    )


def poll_ms(settings: Settings) -> int:
    """The longest pause between two looks at the queue: the most specific of the three keys that is set."""
    system = settings.worker.event_systems.worker
    poller, pgmq = system.metadata.fallback_poller, settings.common.queues.pgmq
    if _is_set(poller, "polling_interval_ms"):
        return poller.polling_interval_ms
    if _is_set(system.timing, "fallback_polling_interval_seconds"):
        return system.timing.fallback_polling_interval_seconds * 1000
    if settings.common.queues.backend == "pgmq" and _is_set(pgmq, "poll_interval_ms"):
        return pgmq.poll_interval_ms
    return poller.polling_interval_ms


def sweep_settings(settings: Settings) -> SweepSettings:
    """When something counts as forgotten, and how often it is looked for."""
    sweep = settings.common.sweep
    timing = settings.orchestration.event_systems.task_readiness.timing
    return SweepSettings(
        slice=sweep.slice,
        hint_grace_ms=sweep.hint_grace_ms,
        park_grace_ms=sweep.park_grace_ms,
        idle_grace_ms=sweep.idle_grace_ms,
        interval_ms=timing.fallback_polling_interval_seconds * 1000,
    )


def rules(settings: Settings) -> Rules:
    """What every process that moves tasks must agree on."""
    return Rules(
        on_blocked=settings.common.execution.on_blocked,
        limits=growth_limits(settings),
        hidden_seconds=float(settings.common.queues.default_visibility_timeout_seconds),
    )


def growth_limits(settings: Settings) -> Limits:
    """How far decisions and batches may go."""
    decisions = settings.orchestration.decision_points
    return Limits(
        max_decision_depth=decisions.max_decision_depth,
        warn_decision_depth=decisions.warn_threshold_depth,
        max_steps_per_decision=decisions.max_steps_per_decision,
        warn_steps_per_decision=decisions.warn_threshold_steps,
        decisions_enabled=decisions.enabled,
        batches_enabled=settings.orchestration.batch_processing.enabled,
    )


def queue_names(settings: Settings) -> QueueNames:
    """The names of the orchestration's queues."""
    queues = settings.common.queues.orchestration_queues
    return QueueNames(queues.task_requests, queues.step_results, queues.task_finalizations)


def backend_settings(settings: Settings) -> dict[str, BackendSettings]:
    """By backend what is set about it: the rest is the backend's own default."""
    tables = {"rabbitmq": settings.common.queues.rabbitmq}
    return {name: given for name, table in tables.items() if (given := table.model_dump(exclude_unset=True))}


def retry_policy(settings: Settings) -> RetryPolicy:
    """The policy of steps whose template says nothing about retries (D-82)."""
    backoff = settings.common.backoff
    return RetryPolicy(
        max_backoff_ms=backoff.max_backoff_seconds * 1000,
        multiplier=backoff.backoff_multiplier,
        jitter=backoff.jitter_max_percentage if backoff.jitter_enabled else 0.0,
    )


def template_environment(settings: Settings) -> str | None:
    """The environment whose overrides templates apply; None while it is not set, whatever its default."""
    execution = settings.common.execution
    return execution.environment if _is_set(execution, "environment") else None


def _is_set(table: Any, name: str) -> bool:
    return name in table.model_fields_set
