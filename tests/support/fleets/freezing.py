"""Workers that are frozen past their lease and thawed, or killed, with results in their hands."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from contextlib import suppress

from tests.support.fleets.fleet import Fleet
from tests.support.fleets.holding import drop_writes, held, waiting
from tests.support.fleets.oracle import Oracle
from tests.support.waiting import until

RESULTS, TRIES = "tasker.step_results", 6


def busiest(fleet: Fleet, oracle: Oracle) -> str:
    """The worker that runs the most steps at this moment."""
    found: list[int] = []

    def is_found() -> bool:
        found[:] = oracle.busy_pids()
        return bool(found)

    until(is_found, "a worker runs steps")
    return fleet.name_of(found[0])


def kill_busiest(fleet: Fleet, oracle: Oracle, url: str) -> None:
    """Kill the worker that runs the most steps. No result can be stored at that moment: it has them in hand still."""
    with held(url, RESULTS):
        fleet.kill(busiest(fleet, oracle))
        drop_writes(oracle, waiting(oracle, RESULTS))


def freeze_with_results(
    fleet: Fleet, oracle: Oracle, url: str, names: Sequence[str], more: Callable[[], object] = int
) -> int:
    """Freeze these workers while they write results, until their steps have been taken away, and thaw them.

    What they were writing is dropped, so that they have it still, and bring it late; until some of it was refused.
    Again when a thawed worker gave up what it had before it brought it, as it may: then `more` gives them work, since
    they have gone on with what there was while a refusal was waited for. Somebody else must sweep. Returns how many
    workers were frozen.
    """
    refused = oracle.refused()
    for times in range(1, TRIES + 1):
        if times > 1:
            more()
        _freeze(fleet, oracle, url, names)
        with suppress(AssertionError):
            until(lambda: oracle.refused() > refused, "what they bring late is refused", limit=10)
            return times * len(names)
    raise AssertionError(f"no result was refused of workers that were frozen {TRIES} times")


def _goes_on(oracle: Oracle) -> bool:
    return oracle.finished() < oracle.created()


def _freeze(fleet: Fleet, oracle: Oracle, url: str, names: Sequence[str]) -> None:
    lost = oracle.failures("worker_lost")
    with held(url, RESULTS):
        until(lambda: bool(waiting(oracle, RESULTS)) or not _goes_on(oracle), "results are being written")
        assert _goes_on(oracle), "every task has ended, and nobody has brought a result late"
        for name in names:
            fleet.signal(name, signal.SIGSTOP)
        drop_writes(oracle, waiting(oracle, RESULTS))
    try:
        until(lambda: oracle.failures("worker_lost") > lost, "their leases have ended")
    finally:
        for name in names:
            fleet.signal(name, signal.SIGCONT)
