"""Workers that went silent, or that a sweep has taken steps from, in the log: one line for each of them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from itertools import groupby

from tasker.services.engine.found import Orphan, SilentWorker, WorkerLabel

_log = logging.getLogger("tasker.orchestration")


class LostWorkerLog:
    """Says once that a worker has not been heard of for two thirds of its lease: it is about to be lost."""

    def __init__(self) -> None:
        self._told: set[str | None] = set()

    def tell(self, silent: Sequence[SilentWorker]) -> None:
        """One that was heard of since may be told of again."""
        for each in silent:
            if each.label.worker not in self._told:
                _log.warning(
                    "worker_silent %s since=%s lease_left=%.1f s",
                    *(_who(each.label), each.since, each.lease_left_ms / 1000),
                )
        self._told = {each.label.worker for each in silent}


def log_lost_workers(taken: Sequence[Orphan]) -> None:
    """Who lost how many steps, and why."""
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
