"""The model of all settings."""

from __future__ import annotations

from tasker.settings.approvals import Approvals
from tasker.settings.breakers import CircuitBreakers, FailureStorm, WorkerBreakers
from tasker.settings.database import Cache, Database, Retention
from tasker.settings.defaults import LONGEST_STOP_MS
from tasker.settings.execution import (
    Backoff,
    BatchProcessing,
    DeadLetterSettings,
    DecisionPoints,
    Execution,
    Handlers,
    Lease,
    Log,
    NamedLimit,
    Sweep,
    TaskTemplates,
    WorkerExecution,
)
from tasker.settings.formats import Tag
from tasker.settings.hooks import IncomingHook
from tasker.settings.http import OrchestrationClient, OrchestrationGrpc, OrchestrationWeb, WorkerGrpc, WorkerWeb
from tasker.settings.listening import OrchestrationSystems, WorkerSystems
from tasker.settings.queues import CommonChannels, QueueSettings, WorkerChannels
from tasker.settings.table import NamedTables, Table, flag, named_tables, several, table, text, whole
from tasker.settings.tenants import TenantQuota


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
        return {name: getattr(self, name) for name in self.declared if name not in Plugins.declared}


class Common(Table):
    """Settings of every process."""

    approvals: Approvals = table(Approvals)
    backoff: Backoff = table(Backoff)
    cache: Cache = table(Cache)
    circuit_breakers: CircuitBreakers = table(CircuitBreakers, live=True)
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


class WorkerSection(Table):
    """Settings of workers."""

    worker_id: str = text(
        "worker-default-001",
        "Display name of the worker, shown in the registry; Tasker does not need it to identify workers.",
    )
    tags: tuple[Tag, ...] = several(
        (), "Tags of this worker, which steps may require (`requires`), for example `gpu`; also `--tags`."
    )
    circuit_breakers: WorkerBreakers = table(WorkerBreakers, live=True)
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
    hooks: NamedTables[IncomingHook] = named_tables()
    limits: NamedTables[NamedLimit] = named_tables(live=True)
    orchestration: Orchestration = table(Orchestration)
    plugins: Plugins = table(Plugins)
    tenants: NamedTables[TenantQuota] = named_tables()
    worker: WorkerSection = table(WorkerSection)
