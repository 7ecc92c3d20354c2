"""What a process shows of itself to who asks over HTTP: nothing of it needs the database."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Literal, NamedTuple, Protocol

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.metrics import Histogram
from tasker.contracts.plan import Plan
from tasker.lifecycle.breaker import BreakerHealth as BreakersHealth
from tasker.lifecycle.deployment import HealthStatus, ListeningHealth
from tasker.orchestration.upkeep import Upkeep
from tasker.plugins.process import PluginHost
from tasker.process.health import OF_BREAKERS
from tasker.process.listening.event_system import EventSystem
from tasker.process.supervision.supervisor import Supervisor
from tasker.resilience.registry import Breakers
from tasker.services.plan_cache import PlanCache


class Observable(Protocol):
    """A worker's runtime, or an orchestrator."""

    supervisor: Supervisor
    events: EventSystem
    breakers: Breakers
    plugins: PluginHost
    upkeep: Upkeep

    def health(self) -> ListeningHealth:
        """How it does."""
        ...


class Buffer(NamedTuple):
    """Something bounded in the memory of a worker; `full` is how often something did not fit, where it can be so."""

    channel: str
    waiting: int
    capacity: int
    full: int | None = None


@dataclass(frozen=True, slots=True)
class WorkerLoad:
    """Steps that a worker can run at the same time, that it has in hand, that it gave back, and why it takes none.

    `refusals` are how often it took on nothing, by reason. `waiting` are the steps that wait for a thread or a child
    process, `waits_ms` is how long the one that has waited longest does so, `waits` how long all steps have waited.
    `busy_in` are those in hand by namespace, of all that it serves; `left_behind` are the threads that still run a
    handler whose attempt has ended.
    """

    slots: int = 0
    busy: int = 0
    given_back: int = 0
    held_by: Collection[str] = ()
    refusals: Mapping[str, int] = field(default_factory=dict)
    waiting: int = 0
    waits_ms: float = 0.0
    waits: Histogram | None = None
    buffers: Sequence[Buffer] = ()
    busy_in: Mapping[str, int] = field(default_factory=dict)
    left_behind: int = 0


class EventCounts(NamedTuple):
    """Domain events since the start: those told, by delivery mode; those of which nothing could be kept (`refused`);
    those handed to subscribers of the process, and those that one of them did not deal with."""

    routed: Mapping[str, int] = MappingProxyType({})
    refused: int = 0
    sent: int = 0
    failures: int = 0


@dataclass(frozen=True, slots=True)
class ProcessSnapshot:
    """The process, and what it serves: `namespaces` and `handlers` of now, `plans` as they were found at its start."""

    kind: Literal["worker", "orchestrator"]
    process: Observable
    identity: Callable[[], str]
    namespaces: Callable[[], Sequence[str]] = tuple
    handlers: Callable[[], Sequence[str]] = tuple
    plans: Sequence[Plan] = ()
    missing: Callable[[Plan], Sequence[str]] = lambda plan: ()
    """The callables of a plan that nobody here resolves."""
    load: Callable[[], WorkerLoad] = WorkerLoad
    events: Callable[[], EventCounts] = EventCounts
    cache: PlanCache | None = None
    """The templates in its memory; None for an orchestrator."""
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def running(self) -> bool:
        """It works: between its start and its stop."""
        return self.process.supervisor.running

    def areas(self) -> Mapping[str, ListeningHealth]:
        """How each part of it does."""
        held, crashes = sorted(self.load().held_by), self.process.supervisor.recent_crashes()
        off = [state.name for state in self.process.plugins.states() if state.off]
        return {
            "events": self.process.events.health(),
            "breakers": _of_breakers(self.process.breakers.health()),
            "services": _degraded(f"crashed in the last minute: {', '.join(sorted(crashes))}" if crashes else ""),
            "plugins": _degraded(f"switched off: {', '.join(off)}" if off else ""),
            "steps": _degraded(f"nothing is claimed: {', '.join(held)}" if held else ""),
        }


def _of_breakers(found: BreakersHealth) -> ListeningHealth:
    return ListeningHealth(OF_BREAKERS[found.status], found.message)


def _degraded(reason: str) -> ListeningHealth:
    return ListeningHealth(HealthStatus.DEGRADED, reason) if reason else ListeningHealth()
