"""Assembly of an orchestrator."""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import cached_property

from tasker.app.assembly import process_context
from tasker.app.process_assembly import Assembly
from tasker.clock import new_task_uuid, new_uuid
from tasker.engine.calls import Engine
from tasker.engine.exchange import CompletingWorker
from tasker.engine.plans import PlanStore
from tasker.engine.process_registry import Registration
from tasker.execution.settings import WorkerSettings
from tasker.json_values import VALUE_LIMIT_BYTES
from tasker.messaging.listening_modes import ORCHESTRATOR_EVENTS, EventSettings
from tasker.messaging.service import MessagingService
from tasker.orchestration.finalization import FinalizationConsumer
from tasker.orchestration.parked_results import ParkedResultConsumer
from tasker.orchestration.queue_actors import MessageInbox
from tasker.orchestration.results import ResultProcessor
from tasker.orchestration.sweep import SweepSettings
from tasker.orchestration.task_requests import TaskRequestConsumer
from tasker.orchestration.upkeep import NoStepExecutor
from tasker.plugins.host import PluginHost
from tasker.process.context import ProcessContext
from tasker.process.heartbeat import ProcessHeartbeat
from tasker.process.orchestrator import Orchestrator
from tasker.resilience.breakers import Breakers
from tasker.services.submission.admission import SubmissionAdmission
from tasker.services.submission.limits import SubmissionLimits
from tasker.services.submission.submit import DraftFactory
from tasker.settings.queues import DepthThresholds
from tasker.settings.table import NamedTables
from tasker.settings.tenants import TenantQuota
from tasker.template.plan import RetryPolicy


def orchestrator_process(
    url: str,
    messaging: MessagingService,
    *,
    settings: WorkerSettings | None = None,
    sweeps: SweepSettings | None = None,
    breakers: Breakers | None = None,
    events: EventSettings = ORCHESTRATOR_EVENTS,
    context_limit_bytes: int = VALUE_LIMIT_BYTES,
    depth_limits: DepthThresholds | None = None,
    retry: RetryPolicy | None = None,
    plugins: PluginHost | None = None,
    tenants: Mapping[str, TenantQuota] = NamedTables(),  # frozen
) -> Orchestrator:
    """Return an orchestrator that is not started yet.

    `retry` is inherited by steps whose template has no retry settings. Requests for a namespace with more ready steps
    than `depth_limits`, or of tenants beyond their quotas, wait; None: no limit. `plugins` is as in `process_context`.
    """
    context = process_context(url, messaging, settings, sweeps, breakers, events, plugins=plugins)
    made = OrchestratorAssembly(context, context_limit_bytes, depth_limits, retry, tenants)
    return Orchestrator(context, made.identity, made.heartbeat, made.actors, made.upkeep)


class OrchestratorAssembly(Assembly):
    """Objects of an orchestrator's process. Parameters as in `orchestrator_process`."""

    def __init__(
        self,
        context: ProcessContext,
        context_limit_bytes: int,
        depth_limits: DepthThresholds | None,
        retry: RetryPolicy | None,
        tenants: Mapping[str, TenantQuota],
    ) -> None:
        super().__init__(context)
        self.identity = new_uuid()
        self._context_limit_bytes, self._depth_limits, self._retry = context_limit_bytes, depth_limits, retry
        self._tenants = tenants

    @cached_property
    def executor(self) -> NoStepExecutor:
        """Executor of a process that runs no steps."""
        settings = self.context.settings
        return NoStepExecutor(
            CompletingWorker(
                self.identity,
                window=settings.limits.enqueue_window,
                timeout_ms=settings.dispatch.handler_timeout_ms,
                grace_ms=settings.lease.grace_ms,
            )
        )

    @cached_property
    def heartbeat(self) -> ProcessHeartbeat:
        """Orchestrator's entry in the registry, with its lease."""
        backend, lease_ms = self.context.messaging.provider_name(), self.context.settings.lease.lease_ms
        limits = self.context.limits.rows
        entry = Registration(self.identity, lease_ms, "orchestrator", backend=backend, limits=limits)
        return ProcessHeartbeat(self.registry, entry)

    @cached_property
    def result_engine(self) -> Engine:
        """Engine for messages of the orchestration queues."""
        return self.context.engines.make("results")

    @cached_property
    def inboxes(self) -> Mapping[str, MessageInbox]:
        """Consumers of all three orchestration queues."""
        names, engine, on_advance = self.context.messaging.names, self.result_engine, self.follow_up.advanced
        plans = PlanStore(engine.connection, self._retry)
        return {
            names.step_results: ParkedResultConsumer(engine, ResultProcessor(engine, random), plans, on_advance),
            names.task_requests: TaskRequestConsumer(
                engine, plans, self.drafts, self.context.clock, self.admission, on_advance, self.submission_limits
            ),
            names.task_finalizations: FinalizationConsumer(engine, on_advance),
        }

    @cached_property
    def submission_limits(self) -> SubmissionLimits:
        """Limits of templates and tenants."""
        return SubmissionLimits(self.result_engine, self._tenants)

    @cached_property
    def drafts(self) -> DraftFactory:
        """Factory that turns requests into tasks."""
        window = self.context.settings.limits.enqueue_window
        return DraftFactory(new_task_uuid, window=window, context_limit_bytes=self._context_limit_bytes)

    @cached_property
    def admission(self) -> SubmissionAdmission | None:
        """Admission control of requests; None: no limit."""
        limits = self._depth_limits
        return SubmissionAdmission(self.result_engine, self.context.clock, limits) if limits else None
