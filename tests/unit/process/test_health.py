"""The health of a process is the worst of its areas, with every reason."""

from __future__ import annotations

import pytest

from tasker.messaging.listening_modes import HealthStatus, ListeningHealth
from tasker.process.health import process_health
from tasker.resilience.breaker import BreakerHealth as BreakersHealth

FINE, CLOSED = ListeningHealth(), BreakersHealth("healthy", "3 circuit breakers: 3 closed")
OPEN, HALF = BreakersHealth("unhealthy", "payments is open"), BreakersHealth("degraded", "payments is half-open")
LOST = ListeningHealth(HealthStatus.DEGRADED, "the listener is lost")
STOPPED = ListeningHealth(HealthStatus.CRITICAL, "it does not run")


@pytest.mark.parametrize(
    ("ears", "breakers", "crashes", "held", "status", "reason"),
    [
        (FINE, CLOSED, {}, [], HealthStatus.HEALTHY, ""),
        (FINE, HALF, {}, [], HealthStatus.DEGRADED, "payments is half-open"),
        (FINE, OPEN, {}, [], HealthStatus.UNHEALTHY, "payments is open"),
        (FINE, CLOSED, {"Claimer.run": 1}, [], HealthStatus.DEGRADED, "Claimer.run crashed"),
        (FINE, CLOSED, {"Claimer.run": 5}, [], HealthStatus.UNHEALTHY, "crashed 5 times in the last minute"),
        (FINE, CLOSED, {}, ["completion_buffer"], HealthStatus.DEGRADED, "nothing is claimed: completion_buffer"),
        (LOST, OPEN, {}, ["fenced"], HealthStatus.UNHEALTHY, "lost; payments is open; nothing is claimed: fenced"),
        (STOPPED, OPEN, {}, [], HealthStatus.CRITICAL, "it does not run"),
    ],
)
def test_the_worst_area_counts_and_all_say_why(
    ears: ListeningHealth,
    breakers: BreakersHealth,
    crashes: dict[str, int],
    held: list[str],
    status: HealthStatus,
    reason: str,
) -> None:
    health = process_health(ears, breakers, crashes, held)
    assert health.status is status
    assert reason in health.reason
