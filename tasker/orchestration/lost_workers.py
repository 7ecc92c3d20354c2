"""Workers that went silent, or that a sweep has taken steps from, in the log: one line for each of them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

_log = logging.getLogger("tasker.orchestration")


class SilentWorkers:
    """Says once that a worker has not been heard of for two thirds of its lease: it is about to be lost (H-51)."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def tell(self, silent: Sequence[Mapping[str, Any]]) -> None:
        """`silent` are workers as `worker_v1` answers them; one that was heard of since may be told of again."""
        for worker in silent:
            if worker["worker"] not in self._told:
                _log.warning(
                    "worker_silent %s since=%s lease_left=%.1f s",
                    _who(worker["worker"], worker),
                    worker["since"],
                    worker["lease_left_ms"] / 1000,
                )
        self._told = {worker["worker"] for worker in silent}


def log_lost_workers(taken: Sequence[Mapping[str, Any]]) -> None:
    """Who lost how many steps, and why. `taken` are orphans as `find_v1` answers them."""
    for worker, group in groupby(sorted(taken, key=_worker), key=_worker):
        steps = list(group)
        _log.warning("worker_lost %s steps=%s reason=%s", _who(worker, steps[0]), len(steps), _why(steps))


def _worker(orphan: Mapping[str, Any]) -> str:
    return str(orphan.get("worker"))


def _who(worker: str, orphan: Mapping[str, Any]) -> str:
    known = {key: orphan.get(f"worker_{key}") for key in ("name", "host", "pid")}
    return " ".join([f"worker={worker}", *(f"{key}={value}" for key, value in known.items() if value is not None)])


def _why(steps: Sequence[Mapping[str, Any]]) -> str:
    silent = next((step["silent_ms"] for step in steps if "silent_ms" in step), None)
    if silent is not None:
        return f"'silent for {silent / 1000:.1f} s, its lease is over'"
    return "'overdue steps'" if any(step.get("overdue") for step in steps) else "'not in the registry'"
