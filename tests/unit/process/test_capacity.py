"""Whether a server has room for the connections of a fleet."""

from __future__ import annotations

from tasker.process.connections import ORCHESTRATOR, WORKER, Capacity


def test_the_processes_started_together_count_while_they_are_not_registered_yet() -> None:
    capacity = Capacity(WORKER, processes=4, allowed=100, reserved=3, in_use=12, live=1)

    assert capacity.needed == 20
    assert str(capacity) == (
        "connections per_process=5 (claim, result, upkeep, lease, listen) processes=4 sum=20 fleet=20 "
        "server_max=100 reserved=3 in_use=12"
    )


def test_what_is_reserved_is_not_there_for_the_fleet() -> None:
    fits = Capacity(ORCHESTRATOR, processes=1, allowed=33, reserved=3, in_use=0, live=10)
    too_many = Capacity(ORCHESTRATOR, processes=1, allowed=33, reserved=3, in_use=0, live=11)

    assert (fits.needed, fits.fits) == (30, True)
    assert (too_many.needed, too_many.fits) == (33, False)
