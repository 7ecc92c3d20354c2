"""State of a process as reported over HTTP; nothing here needs the database."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Literal, NamedTuple, Protocol

from tasker.dataclasses import dataclass
from tasker.engine.plans import PlanCache
from tasker.messaging.listening_modes import HealthStatus, ListeningHealth
from tasker.metrics import Histogram, Metric
from tasker.orchestration.upkeep import Upkeep
from tasker.plugins.host import PluginHost
from tasker.process.event_system import EventSystem
from tasker.process.health import BREAKERS_PART
from tasker.process.supervisor import Supervisor
from tasker.resilience.breaker import BreakerHealth as BreakersHealth
from tasker.resilience.breakers import Breakers
from tasker.template.plan import Plan


class Observable(Protocol):
    """Runtime of a worker or an orchestrator."""

    supervisor: Supervisor
    events: EventSystem
    breakers: Breakers
    plugins: PluginHost
    upkeep: Upkeep

    def health(self) -> ListeningHealth:
        """Return the health of the process."""
        ...


class Buffer(NamedTuple):
    """Bounded buffer in the memory of a worker.

    `full` counts how often an item did not fit; None for a buffer where that cannot happen.
    """

    channel: str
    waiting: int
    capacity: int
    full: int | None = None


@dataclass(frozen=True, slots=True)
class WorkerLoad:
    """Load of a worker: its slots, claims, released steps and the reasons why it stops claiming.

    `slots` is the number of steps that it can run at the same time, `busy` the number of its claims, `given_back` the
    number of steps released without an attempt. `throttled_by` are the current reasons why it claims nothing;
    `refusals` counts how often it claimed nothing or less, by reason. `waiting` is the number of steps that wait for a
    thread or a child process, `waits_ms` the longest current wait, `waits` the histogram of all waits; `steps` are the
    metrics of its steps. `busy_in` counts claims by namespace, for all served namespaces; `left_behind` counts threads
    that still run a handler whose attempt has ended.
    """

    slots: int = 0
    busy: int = 0
    given_back: int = 0
    throttled_by: Collection[str] = ()
    refusals: Mapping[str, int] = field(default_factory=dict)
    waiting: int = 0
    waits_ms: float = 0.0
    waits: Histogram | None = None
    steps: Sequence[Metric] = ()
    buffers: Sequence[Buffer] = ()
    busy_in: Mapping[str, int] = field(default_factory=dict)
    left_behind: int = 0


class EventCounts(NamedTuple):
    """Domain events since the start of the process.

    `routed` counts published events by delivery mode, `refused` those that could not be stored, `sent` those passed to
    subscribers of this process, and `failures` those that a subscriber failed to process.
    """

    routed: Mapping[str, int] = MappingProxyType({})
    refused: int = 0
    sent: int = 0
    failures: int = 0


@dataclass(frozen=True, slots=True)
class ProcessSnapshot:
    """State of a process: `namespaces` and `handlers` are current, `plans` are those found at its start."""

    kind: Literal["worker", "orchestrator"]
    process: Observable
    identity: Callable[[], str]
    namespaces: Callable[[], Sequence[str]] = tuple
    handlers: Callable[[], Sequence[str]] = tuple
    plans: Sequence[Plan] = ()
    missing: Callable[[Plan], Sequence[str]] = lambda plan: ()
    """Function that returns the callables of a plan that this process cannot resolve."""
    load: Callable[[], WorkerLoad] = WorkerLoad
    events: Callable[[], EventCounts] = EventCounts
    cache: PlanCache | None = None
    """Cache of compiled templates; None for an orchestrator."""
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def running(self) -> bool:
        """True between the start and the stop of the process."""
        return self.process.supervisor.running

    def areas(self) -> Mapping[str, ListeningHealth]:
        """Return the health of each part of the process."""
        held, crashes = sorted(self.load().throttled_by), self.process.supervisor.recent_crashes()
        off = [state.name for state in self.process.plugins.states() if state.off]
        return {
            "events": self.process.events.health(),
            "breakers": _of_breakers(self.process.breakers.health()),
            "services": _degraded(f"crashed in the last minute: {', '.join(sorted(crashes))}" if crashes else ""),
            "plugins": _degraded(f"switched off: {', '.join(off)}" if off else ""),
            "steps": _degraded(f"nothing is claimed: {', '.join(held)}" if held else ""),
        }


def _of_breakers(breakers: BreakersHealth) -> ListeningHealth:
    return ListeningHealth(BREAKERS_PART[breakers.status], breakers.message)


def _degraded(reason: str) -> ListeningHealth:
    return ListeningHealth(HealthStatus.DEGRADED, reason) if reason else ListeningHealth()
