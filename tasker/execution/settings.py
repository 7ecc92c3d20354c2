"""Settings of a worker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tasker.dataclasses import dataclass
from tasker.engine.fleet_rules import DEFAULT_RULES, FleetRules
from tasker.engine.named_limits import NO_LIMITS, NamedLimits
from tasker.messaging.listening_modes import WORKER_EVENTS, EventSettings
from tasker.settings.execution import Execution, Lease, WorkerExecution
from tasker.settings.listening import SeenEvents
from tasker.settings.queues import (
    DepthThresholds,
    DomainEvents,
    HandlerDispatch,
    HandOff,
    InProcessEvents,
    OverflowPolicy,
)
from tasker.settings.table import NamedTables
from tasker.settings.tenants import TenantQuota

if TYPE_CHECKING:
    from tasker.resources.tables import ResourceTables


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """Tables that a worker reads."""

    dispatch: HandlerDispatch = HandlerDispatch.for_single_process()
    hand_off: HandOff = HandOff.for_single_process()
    execution: WorkerExecution = WorkerExecution.for_single_process()
    lease: Lease = Lease.for_single_process()
    limits: Execution = Execution.for_single_process()
    overflow: OverflowPolicy = OverflowPolicy.for_single_process()
    """When a full buffer is logged."""
    domain_events: DomainEvents = DomainEvents.for_single_process()
    subscribers: InProcessEvents = InProcessEvents.for_single_process()
    seen_events: SeenEvents = SeenEvents.for_single_process()
    events: EventSettings = WORKER_EVENTS
    """Settings of how the process learns of work."""
    rules: FleetRules = DEFAULT_RULES
    """Settings that all processes agree on."""
    resources: ResourceTables | None = None
    """Resources of handlers; None without any."""
    tags: frozenset[str] = frozenset()
    """What this worker has that steps may require."""
    named_limits: NamedLimits = NO_LIMITS
    """Limits that templates name."""
    depth_limits: DepthThresholds = DepthThresholds.for_single_process()
    """Depths of queues at which handlers may start no tasks."""
    tenants: Mapping[str, TenantQuota] = NamedTables()
    """Quotas of the tenants for whom handlers start tasks."""
    name: str | None = None
    """Human-readable name, shown in the registry."""
    batch: int = 500
    """Largest number of results in one write."""
    drowse_ms: int = 20
    """Time for which a woken worker stays marked asleep, so that short work writes no marks."""


def with_resources(settings: WorkerSettings, resources: Mapping[str, Any] | None) -> WorkerSettings:
    """Return the settings with further resources, which take the place of configured ones of the same name."""
    if not resources:
        return settings
    from tasker.resources.tables import ResourceTables  # needed for workers with resources only

    configured = settings.resources or ResourceTables()
    return replace(settings, resources=replace(configured, resources={**configured.resources, **resources}))
