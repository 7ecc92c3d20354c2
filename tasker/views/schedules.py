"""Views of schedules, their fires and their changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from tasker.dataclasses import dataclass
from tasker.errors import UsageError
from tasker.errors.remedies import remedy
from tasker.json_values import require_findable
from tasker.views.model import published


@dataclass(frozen=True, slots=True)
class ScheduleFire:
    """Fire time with what became of it.

    `kind` is `schedule`, `missed`, `trigger` or `backfill`; `outcome` is `fired`, `queued` (it waits until an open task
    ends), `skipped` (a task was open), `missed` (no process ran then) or `refused` (`detail.error` says why).
    """

    fire_at: datetime
    kind: str
    outcome: str
    task_uuid: str | None
    task_state: str | None
    detail: Mapping[str, Any] | None
    decided_at: datetime


@dataclass(frozen=True, slots=True)
class SchedulePause:
    """Pause of a schedule."""

    actor: str
    at: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class Schedule:
    """Schedule as stored. Its name is `namespace/template/name`.

    `state` is `active`, `paused`, `ended` (no fire times are left) or `removed` (its template no longer declares it);
    `sentence` says when it fires next, or why it does not. `keys` are those of a template, without defaults; sensitive
    values of its context are redacted. `version` of the template; None: the version registered last.
    """

    schedule_uuid: str
    namespace: str
    template: str
    name: str
    version: str | None
    declared: bool
    state: str
    sentence: str
    keys: Mapping[str, Any]
    timezone: str
    next_at: datetime | None
    paused: SchedulePause | None
    last: ScheduleFire | None
    queued: int
    running: int
    created_at: datetime
    updated_at: datetime

    @property
    def address(self) -> str:
        """Namespace, template and name, as commands take it."""
        return f"{self.namespace}/{self.template}/{self.name}"


@dataclass(frozen=True, slots=True)
class UpcomingFire:
    """Fire time to come, also in the zone of the schedule; `note` describes the effect of a daylight-saving change."""

    fire_at: datetime
    local: str
    note: str | None


@dataclass(frozen=True, slots=True)
class Backfill:
    """Fire times of a span: those that get a task, and the number that already have one or wait for it."""

    fires: Sequence[datetime]
    left_out: int
    started: bool


@published("ScheduleChangeResponse")
@dataclass(frozen=True, slots=True)
class ScheduleChange:
    """Result of an action; `changed` is false if the schedule was paused, or not paused, before."""

    schedule: str
    changed: bool


@published("TriggerResponse")
@dataclass(frozen=True, slots=True)
class TriggeredTask:
    """Task that was submitted."""

    task_uuid: str


def parts_of(address: str) -> tuple[str, str, str]:
    """Return namespace, template and name of a schedule. Raises `UsageError`."""
    require_findable(address, "schedule")
    parts = address.split("/")
    if len(parts) != 3 or not all(parts):
        hint = "expected NAMESPACE/TEMPLATE/SCHEDULE; see {}"
        raise UsageError(f"{address!r} does not name a schedule", hint=remedy(hint, "tasker schedule list"))
    return parts[0], parts[1], parts[2]
