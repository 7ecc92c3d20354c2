"""Log lines about workers that went silent or lost steps to a sweep: one for each."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from itertools import groupby

from tasker.services.engine.found import Orphan, SilentWorker, WorkerLabel

_log = logging.getLogger("tasker.orchestration")


class LostWorkerLog:
    """Log of workers without a heartbeat for two thirds of their lease, which are about to be lost; one line each."""

    def __init__(self) -> None:
        self._told: set[str | None] = set()

    def tell(self, silent: Sequence[SilentWorker]) -> None:
        """Log the silent workers. A worker that renewed its lease since may be logged again."""
        for each in silent:
            if each.label.worker not in self._told:
                _log.warning(
                    "worker_silent %s since=%s lease_left=%.1f s",
                    *(_who(each.label), each.since, each.lease_left_ms / 1000),
                )
        self._told = {each.label.worker for each in silent}


def log_lost_workers(taken: Sequence[Orphan]) -> None:
    """Log each worker that lost steps, with their number and the reason."""
    for _, group in groupby(sorted(taken, key=_worker), key=_worker):
        steps = list(group)
        _log.warning("worker_lost %s steps=%s reason=%s", _who(steps[0].label), len(steps), _why(steps))


def _worker(orphan: Orphan) -> str:
    return str(orphan.label.worker)


def _who(label: WorkerLabel) -> str:
    known = [f"{key}={value}" for key, value in label._asdict().items() if key == "worker" or value is not None]
    return " ".join(known)


def _why(steps: Sequence[Orphan]) -> str:
    silent = next((step.silent_ms for step in steps if step.silent_ms is not None), None)
    if silent is not None:
        return f"'silent for {silent / 1000:.1f} s, its lease is over'"
    return "'overdue steps'" if any(step.overdue for step in steps) else "'not in the registry'"
