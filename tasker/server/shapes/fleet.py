"""Schemas of the fleet."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict

from tasker.server.shapes.texts import Name, Text
from tasker.services.audit import RecordedAction


class WorkerInfo(BaseModel):
    """Registered process. `in_hand` is the number of claims at its last heartbeat."""

    worker: str
    kind: str
    name: str | None
    host: str
    pid: int
    version: str
    state: str
    namespaces: list[str]
    callables: list[str]
    concurrency: int
    in_hand: int
    started_at: datetime
    beat_at: datetime
    lease_left_ms: int | None
    beat_age_ms: int


class OperatorActionListResponse(BaseModel):
    """Operator actions, newest first."""

    actions: list[RecordedAction]


class WorkerListResponse(BaseModel):
    """Processes, live ones first."""

    workers: list[WorkerInfo]


class HandlerInfo(BaseModel):
    """Handler and the live workers that have it."""

    name: str
    namespaces: list[str]
    workers: list[str]


class HandlerListResponse(BaseModel):
    """Handlers sorted by name."""

    handlers: list[HandlerInfo]


class QueueInfo(BaseModel):
    """Queue; figures unknown to the provider are null. One message stands for up to `per_message` steps."""

    queue: str
    depth: int
    in_flight: int | None
    unseen: int | None
    oldest_seconds: float | None
    consumers: int | None
    readers: int
    in_database: int | None
    paused: str | None
    per_message: int


class QueuesResponse(BaseModel):
    """Messaging provider and its queues; `remarks` are notes for the operator."""

    provider: str
    healthy: bool
    capabilities: dict[str, bool]
    processes: dict[str, int]
    queues: list[QueueInfo]
    remarks: list[str]


class PauseRequest(BaseModel):
    """Target to pause: one of namespace, template (`NS/NAME`), step (`NS/NAME/STEP`), task and queue."""

    model_config = ConfigDict(extra="forbid")

    namespace: Name | None = None
    template: Name | None = None
    step: Name | None = None
    task: Name | None = None
    queue: Name | None = None
    reason: Text = ""
    actor: Name | None = None


class PauseResponse(BaseModel):
    """Result of pausing a target."""

    target: str
    paused: bool


class ResumeResponse(BaseModel):
    """Result of resuming a target."""

    target: str
    resumed: bool
    held: int | None


class KeyUseInfo(BaseModel):
    """Use of a limit for one value of its key; steps are counted to 1,000."""

    value: str
    running: int
    waiting: int
    since: datetime | None


class LimitInfo(BaseModel):
    """Limit, for each value of its key: of the steps that run at the same time (`most`), or of the attempts that begin
    per second (`rate`); with what runs and waits."""

    name: str
    most: int | None
    rate: float | None
    burst: float | None
    changed_at: datetime
    running: int
    waiting: int
    keys: list[KeyUseInfo] | None
    more_keys: bool


class LimitListResponse(BaseModel):
    """Limits, by name."""

    limits: list[LimitInfo]


class PauseInfo(BaseModel):
    """Pause and the amount of work that it holds back."""

    namespace: str | None
    template: str | None
    step: str | None
    task: str | None
    queue: str | None
    actor: str
    reason: str
    paused_at: datetime
    held: int | None


class PauseListResponse(BaseModel):
    """Pauses, oldest first, and the log of pausing and resuming."""

    pauses: list[PauseInfo]
    log: list[dict[str, Any]]
