"""Types for controlling a worker."""

from __future__ import annotations

from enum import Enum

from pydantic import ConfigDict, Field

from tasker.handlers.worker_models import BootstrapConfig as EngineConfig


class WorkerState(str, Enum):  # noqa: UP042 (its text is published as `WorkerState.RUNNING`)
    """State of a worker."""

    STARTING = "starting"
    RUNNING = "running"
    SHUTTING_DOWN = "shutting_down"
    STOPPED = "stopped"
    ERROR = "error"


class BootstrapConfig(EngineConfig):
    """Configuration of a worker at its start; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid")

    log_level: str = Field(default="info", pattern="^(trace|debug|info|warn|error)$")
