"""A worker that is frozen past its lease and thawed."""

from __future__ import annotations

import signal

from tests.support.fleet import Fleet
from tests.support.oracle import Oracle
from tests.support.waiting import until

TRIES = 6


def busiest(fleet: Fleet, oracle: Oracle) -> str:
    """The worker that runs the most steps at this moment."""
    found: list[int | None] = []

    def is_found() -> bool:
        found.append(oracle.busiest_pid())
        return found[-1] is not None

    until(is_found, "a worker runs steps")
    return fleet.name_of(found[-1] or 0)


def freeze_until_lost(fleet: Fleet, oracle: Oracle) -> None:
    """Freeze a worker until its lease has ended and its steps are taken away, then thaw it.

    Again with another one, when it had ended its steps just before.
    """
    for _ in range(TRIES):
        frozen = busiest(fleet, oracle)
        fleet.signal(frozen, signal.SIGSTOP)
        try:
            until(lambda: oracle.failures("worker_lost") > 0, "its lease has ended", limit=20)
            return
        except AssertionError:
            continue
        finally:
            fleet.signal(frozen, signal.SIGCONT)
    raise AssertionError("no frozen worker lost a step")
