"""The health of a process: the worst state of its parts, with the reasons."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tasker.messaging.listening_modes import HealthStatus, ListeningHealth
from tasker.resilience.breaker import BreakerHealth as BreakersHealth

MANY_CRASHES = 5
"""Crashes of one service within a minute from which on the process is unhealthy: restarts do not help."""
ORDER = list(HealthStatus)
BREAKERS_PART = {
    "healthy": HealthStatus.HEALTHY,
    "degraded": HealthStatus.DEGRADED,
    "unhealthy": HealthStatus.UNHEALTHY,
}


def process_health(
    events: ListeningHealth, breakers: BreakersHealth, crashes: Mapping[str, int], holds: Collection[str] = ()
) -> ListeningHealth:
    """Return the worst of: event listening, circuit breakers, services, and throttled claims.

    `crashes` counts the crashes of the last minute by service, `holds` names the reasons for which nothing is claimed.
    """
    areas = [events, _breakers(breakers), *(_service(*item) for item in crashes.items())]
    areas += [ListeningHealth(HealthStatus.DEGRADED, f"nothing is claimed: {reason}") for reason in sorted(holds)]
    worst = max((area.status for area in areas), key=ORDER.index)
    return ListeningHealth(worst, "; ".join(area.reason for area in areas if area.reason))


def _breakers(breakers: BreakersHealth) -> ListeningHealth:
    status = BREAKERS_PART[breakers.status]
    return ListeningHealth(status, "" if status is HealthStatus.HEALTHY else breakers.message)


def _service(name: str, times: int) -> ListeningHealth:
    status = HealthStatus.UNHEALTHY if times >= MANY_CRASHES else HealthStatus.DEGRADED
    return ListeningHealth(
        status, f"{name} crashed {times} times in the last minute" if times > 1 else f"{name} crashed"
    )
