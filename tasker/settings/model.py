"""The model of all settings."""

from __future__ import annotations

from typing import Literal

from tasker.settings.breakers import CircuitBreakers, FailureStorm, WorkerBreakers
from tasker.settings.database import Cache, Database, Retention
from tasker.settings.defaults import (
    KEPT_LOG_LINES,
    LEASE_MS,
    LONGEST_STOP_MS,
    LOOP_LAG_MS,
    RESULT_PATH,
    STEP_GRACE_MS,
    THREADS,
)
from tasker.settings.execution import (
    Backoff,
    BatchProcessing,
    DeadLetterSettings,
    DecisionPoints,
    Execution,
    Log,
    Sweep,
    TaskTemplates,
)
from tasker.settings.formats import CallablePattern, ErrorRuleLine
from tasker.settings.http import OrchestrationClient, OrchestrationGrpc, OrchestrationWeb, WorkerGrpc, WorkerWeb
from tasker.settings.listening import OrchestrationSystems, WorkerSystems
from tasker.settings.queues import CommonChannels, QueueSettings, WorkerChannels
from tasker.settings.table import Table, choice, flag, several, table, text, whole


class Plugins(Table):
    """Enabled and disabled plugins. Each plugin that has settings has a table of its own name below."""

    enabled: tuple[str, ...] = several(
        (),
        "Names of required plugins; built-in plugins are enabled here too.",
        variable="TASKER_PLUGINS_ENABLED",
        advice="`tasker plugin list` shows the names.",
    )
    disabled: tuple[str, ...] = several(
        (),
        "Names of installed plugins that are not imported; their tables are ignored.",
        variable="TASKER_PLUGINS_DISABLED",
    )

    def tables(self) -> dict[str, Table]:
        """Return the tables of plugins by the plugin's name (see `tasker.settings.installed_tables`)."""
        return {name: getattr(self, name) for name in type(self).model_fields if name not in Plugins.model_fields}


class Common(Table):
    """Settings of every process."""

    backoff: Backoff = table(Backoff)
    cache: Cache = table(Cache)
    circuit_breakers: CircuitBreakers = table(CircuitBreakers)
    database: Database = table(Database)
    execution: Execution = table(Execution)
    failure_storm: FailureStorm = table(FailureStorm)
    log: Log = table(Log)
    mpsc_channels: CommonChannels = table(CommonChannels)
    queues: QueueSettings = table(QueueSettings)
    retention: Retention = table(Retention)
    sweep: Sweep = table(Sweep)
    task_templates: TaskTemplates = table(TaskTemplates)


class Orchestration(Table):
    """Settings of orchestrators."""

    enable_performance_logging: bool = flag(True, "Log the duration of creating, enqueueing and evaluating.")
    shutdown_timeout_ms: int = whole(
        30_000,
        1000,
        LONGEST_STOP_MS,
        "Time limit of an orderly stop of a worker or orchestrator; afterwards the process exits anyway.",
    )
    batch_processing: BatchProcessing = table(BatchProcessing)
    decision_points: DecisionPoints = table(DecisionPoints)
    dlq: DeadLetterSettings = table(DeadLetterSettings)
    event_systems: OrchestrationSystems = table(OrchestrationSystems)
    grpc: OrchestrationGrpc = table(OrchestrationGrpc)
    web: OrchestrationWeb = table(OrchestrationWeb)


class Lease(Table):
    """Lease by which other processes detect that a worker is gone."""

    lease_ms: int = whole(LEASE_MS, 1000, 600_000, "Time that a silent worker keeps its steps.")
    grace_ms: int = whole(STEP_GRACE_MS, 0, 600_000, "Time after its timeout until a step is taken from a worker.")


class WorkerExecution(Table):
    """Execution of steps in a worker, and the report of their results."""

    threads: int = whole(THREADS, 1, 1000, "Threads for blocking handlers.")
    loop_lag_warning_ms: int = whole(
        LOOP_LAG_MS,
        0,
        600_000,
        "An async handler that blocks the event loop for longer is logged with its stack; 0: never.",
    )
    keep_logs: Literal["debug", "info", "warning", "error", "off"] = choice(
        "info", "Minimum level at which output of handlers (log and print) is stored with their steps; `off`: none."
    )
    kept_log_lines: int = whole(KEPT_LOG_LINES, 1, 100_000, "Maximum number of stored log lines per attempt.")
    result_path: Literal["inline", "queued"] = choice(
        RESULT_PATH,
        "`inline`: the worker advances its tasks itself; `queued`: an orchestrator processes its results.",
    )
    error_rules: tuple[ErrorRuleLine, ...] = several(
        (),
        "Errors after which steps are retried or not, whatever their templates and handlers say: "
        "`payments never card_declined 404`, `payments/charge retry KeyError`, `* never sqlstate:42`. The first that "
        "names an error decides.",
    )


class Handlers(Table):
    """Code that templates may name."""

    allow: tuple[CallablePattern, ...] = several(
        (),
        "What templates may import by its path beside the handlers that are registered or found: `my_project.*` is "
        "everything below a package, `*` everything that is installed.",
    )


class WorkerSection(Table):
    """Settings of workers."""

    worker_id: str = text(
        "worker-default-001",
        "Display name of the worker, shown in the registry; Tasker does not need it to identify workers.",
    )
    circuit_breakers: WorkerBreakers = table(WorkerBreakers)
    event_systems: WorkerSystems = table(WorkerSystems)
    execution: WorkerExecution = table(WorkerExecution)
    grpc: WorkerGrpc = table(WorkerGrpc)
    handlers: Handlers = table(Handlers)
    lease: Lease = table(Lease)
    mpsc_channels: WorkerChannels = table(WorkerChannels)
    orchestration_client: OrchestrationClient = table(OrchestrationClient)
    web: WorkerWeb = table(WorkerWeb)


class Settings(Table):
    """Complete configuration. A process reads its own part and the common part."""

    common: Common = table(Common)
    orchestration: Orchestration = table(Orchestration)
    plugins: Plugins = table(Plugins)
    worker: WorkerSection = table(WorkerSection)
