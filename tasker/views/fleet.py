"""Views of the fleet: processes, handlers, queues, pauses and operator actions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from tasker.dataclasses import dataclass
from tasker.views.model import published

TOLERANCE = 20
"""Number of messages in transit at any time; a smaller difference is ignored."""


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """Registered worker or orchestrator. `in_hand` is the number of claims at its last heartbeat, `beat_age_ms` ago;
    `lease_left_ms` may be negative."""

    worker: str
    kind: str
    name: str | None
    host: str
    pid: int
    version: str
    state: str
    namespaces: Sequence[str]
    callables: Sequence[str]
    tags: Sequence[str]
    concurrency: int
    in_hand: int
    started_at: datetime
    beat_at: datetime
    lease_left_ms: int | None
    beat_age_ms: int


@dataclass(frozen=True, slots=True)
class HandlerInfo:
    """Handler and the live workers that have it."""

    name: str
    namespaces: Sequence[str]
    workers: Sequence[str]


@dataclass(frozen=True, slots=True)
class QueueInfo:
    """Queue; figures unknown to the provider are null, and so is `unseen` if it has no such queue.

    `in_database` is the number of messages according to the database; each stands for up to `per_message` steps.
    `readers` are live processes that receive from it, `paused` is the time, actor and reason of a pause.
    """

    queue: str
    depth: int
    in_flight: int | None
    unseen: int | None
    oldest_seconds: float | None
    consumers: int | None
    readers: int
    in_database: int | None
    paused: str | None = None
    per_message: int = 1

    @property
    def exists(self) -> bool:
        """True if the provider has the queue."""
        return self.unseen is not None

    def remark(self) -> str | None:
        """Return a remark if the queue is paused, or if provider and database differ significantly."""
        if self.paused is not None:
            return f"{self.queue} is paused {self.paused}. To resume: tasker resume --queue {self.queue}"
        if self.in_database is None:
            return None
        depth, unseen = self.depth, self.unseen or 0
        tolerance = max(TOLERANCE, self.in_database // 10)
        if (missing := self.in_database - (depth + unseen) * self.per_message) > tolerance:
            return (
                f"{self.queue}: {missing} of {self.in_database} steps enqueued in the database have no message here. "
                f"Sweeps resend them; if the number does not drop, processes use another provider (tasker broker "
                f"migrate)"
            )
        if (extra := depth - self.in_database) > tolerance:
            return f"{self.queue}: {extra} messages too many. They are doubled or outdated, and dropped when received"
        return None


@published("QueuesResponse", derived={"remarks": "remarks"})
@dataclass(frozen=True, slots=True)
class BrokerReport:
    """Messaging provider and its queues; `remarks` are notes for the operator.

    `processes` counts the live processes by the provider that they use.
    """

    provider: str
    healthy: bool
    capabilities: Mapping[str, bool]
    processes: Mapping[str, int]
    queues: Sequence[QueueInfo]

    @property
    def remarks(self) -> list[str]:
        """All remarks for the operator as sentences."""
        strangers = [
            f"processes that use {name}, not {self.provider}: {number}. They see no message of this provider"
            for name, number in self.processes.items()
            if name not in ("", self.provider)
        ]
        return [*strangers, *(remark for queue in self.queues if (remark := queue.remark()))]


@published("KeyUseInfo")
@dataclass(frozen=True, slots=True)
class KeyUse:
    """Use of a limit for one value of its key: numbers of steps, counted to 1,000. `since` is when the longest
    running one got its permit."""

    value: str
    running: int
    waiting: int
    since: datetime | None


@published("LimitInfo")
@dataclass(frozen=True, slots=True)
class LimitUse:
    """Use of a limit: numbers of steps, counted to 10,000.

    `most` steps run at the same time for each value of the key, and `rate` attempts per second begin, `burst` of them
    at once after a pause; null: no such number. With a rate alone, `running` are those that wait for a worker.
    `declared_at` is when the newest configuration with it was changed, null for a limit of a template; `templates` are
    those whose steps name it. `keys` are those for which steps wait, then others; null if they are not shown.
    """

    name: str
    most: int | None
    rate: float | None
    burst: float | None
    changed_at: datetime
    declared_at: datetime | None
    templates: Sequence[str]
    running: int
    waiting: int
    keys: Sequence[KeyUse] | None
    more_keys: bool

    def without_keys(self) -> LimitUse:
        """Return the same without the values of its keys, which are parts of tasks' inputs and results."""
        return replace(self, keys=None, more_keys=False)


@published("PauseInfo")
@dataclass(frozen=True, slots=True)
class Pause:
    """Pause of a queue, a task, a namespace, or a template or step of it, with its actor, reason and start.

    `held` is the number of ready steps, or of messages of a queue, that wait for its end; null if the broker does not
    answer.
    """

    namespace: str | None
    template: str | None
    step: str | None
    task: str | None
    queue: str | None
    actor: str
    reason: str
    paused_at: datetime
    held: int | None


@dataclass(frozen=True, slots=True)
class PauseChange:
    """Entry in the log of pauses: the `action` (pause or resume), its target and its actor."""

    action: str
    target: str
    actor: str
    reason: str
    created_at: datetime


@published("PauseListResponse")
@dataclass(frozen=True, slots=True)
class PauseList:
    """Pauses, oldest first, and the log of pausing and resuming, newest first."""

    pauses: Sequence[Pause]
    log: Sequence[PauseChange]


@published("PauseResponse")
@dataclass(frozen=True, slots=True)
class Paused:
    """Result of pausing a target; `paused` is false if it was paused already."""

    target: str
    paused: bool


@published("ResumeResponse")
@dataclass(frozen=True, slots=True)
class Resumed:
    """Result of resuming a target; `held` is the number of ready steps or messages that continue."""

    target: str
    resumed: bool
    held: int | None


@dataclass(frozen=True, slots=True)
class RecordedAction:
    """Recorded action with the status of its response (for a command the exit code), or None if unknown.

    `refusal` is the reason why it was not done: a message, or only the error's type if its message may be secret.
    """

    action_uuid: str
    requested_at: datetime
    actor: str
    proof: str
    endpoint: str
    path: str
    request_id: str
    address: str | None
    status: int | None
    refusal: str | None = None


CHECKS = ("versions", "connections", "settings", "clocks", "rows", "queues")


@published("Finding")
@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """Problem found by a check, with examples and a fix. `wrong` is false if it resolves itself."""

    check: str
    what: str
    fix: str
    wrong: bool = True
    examples: Sequence[str] = ()


@published("DoctorResponse", derived={"wrong": "wrong", "checks": "checks"})
@dataclass(frozen=True, slots=True)
class DoctorReport:
    """Checks that ran and their findings."""

    findings: Sequence[DoctorFinding]

    @property
    def wrong(self) -> bool:
        """True if any finding does not resolve itself."""
        return any(finding.wrong for finding in self.findings)

    @property
    def checks(self) -> Sequence[str]:
        """Names of the checks."""
        return CHECKS
