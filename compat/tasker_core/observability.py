"""How the worker of this process fares."""

from __future__ import annotations

import tasker.observability as engine
from tasker.bootstrap import is_worker_running
from tasker.types import HealthCheck, WorkerConfig, WorkerMetrics
from tasker_core.exceptions import WorkerNotInitializedError

__all__ = ["get_health_check", "get_metrics", "get_worker_config"]


def get_health_check() -> HealthCheck:
    """The worker's health. Raises `WorkerNotInitializedError` without a worker."""
    _require_worker()
    return engine.get_health_check()


def get_metrics() -> WorkerMetrics:
    """What the worker has done since its start. Raises `WorkerNotInitializedError` without a worker."""
    _require_worker()
    return engine.get_metrics()


def get_worker_config() -> WorkerConfig:
    """The settings that the worker runs with. Raises `WorkerNotInitializedError` without a worker."""
    _require_worker()
    return engine.get_worker_config()


def _require_worker() -> None:
    if not is_worker_running():
        raise WorkerNotInitializedError("no worker runs in this process: call bootstrap_worker() first")
