"""Observation of this process's worker."""

from __future__ import annotations

import tasker.observability as engine
from tasker.bootstrap import is_worker_running
from tasker.handlers.worker_models import HealthCheck, WorkerConfig, WorkerMetrics
from tasker_core.exceptions import WorkerNotInitializedError

__all__ = ["get_health_check", "get_metrics", "get_worker_config"]


def get_health_check() -> HealthCheck:
    """Return the worker's health. Raises `WorkerNotInitializedError` without a worker."""
    _require_worker()
    return engine.get_health_check()


def get_metrics() -> WorkerMetrics:
    """Return the worker's metrics since its start. Raises `WorkerNotInitializedError` without a worker."""
    _require_worker()
    return engine.get_metrics()


def get_worker_config() -> WorkerConfig:
    """Return the settings of the running worker. Raises `WorkerNotInitializedError` without a worker."""
    _require_worker()
    return engine.get_worker_config()


def _require_worker() -> None:
    if not is_worker_running():
        raise WorkerNotInitializedError("no worker runs in this process: call bootstrap_worker() first")
