"""Answers of the engine about unclaimed steps: those found by a sweep, and those whose result is parked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, NamedTuple, Self

from tasker.dataclasses import dataclass
from tasker.handlers.claims import NO_LIMITS, RetryTimes

Row = Mapping[str, Any]


class WorkerLabel(NamedTuple):
    """Worker as shown to people; values missing in the registry are None."""

    worker: str | None
    name: str | None
    host: str | None
    pid: int | None

    @classmethod
    def parse(cls, row: Row) -> Self:
        """Parse the columns `worker` and `worker_*` of a row."""
        return cls(row.get("worker"), row.get("worker_name"), row.get("worker_host"), row.get("worker_pid"))


@dataclass(frozen=True, slots=True)
class SilentWorker:
    """Worker that has sent no heartbeat since `since`, but still has its lease."""

    label: WorkerLabel
    since: str
    lease_left_ms: float

    @classmethod
    def parse(cls, row: Row) -> Self:
        """Parse a row of `silent`."""
        return cls(WorkerLabel.parse(row), row["since"], row["lease_left_ms"])


@dataclass(frozen=True, slots=True)
class FoundStep:
    """Step found by a sweep: `template` is the id of its plan, `ordinal` its position in the plan."""

    step: str
    task: str
    token: int
    namespace: str
    template: int
    ordinal: int
    attempt: int

    @classmethod
    def parse(cls, row: Row, **more: Any) -> Self:
        """Parse a row of an answer's list; `more` has the fields of a subclass."""
        common = row["s"], row["t"], row["k"], row["namespace"], row["template"], row["ordinal"], row["attempt"]
        return cls(*common, **more)


@dataclass(frozen=True, slots=True)
class Orphan(FoundStep):
    """Running step whose worker is gone, or that is `overdue`; `silent_ms` is set if the worker's lease has expired."""

    label: WorkerLabel
    overdue: bool
    silent_ms: float | None
    times: RetryTimes = NO_LIMITS
    known: Mapping[str, Any] = field(default_factory=dict)
    """What is known of the attempt: `claimed_at`, and the `progress` that it reported last."""

    @classmethod
    def of(cls, row: Row) -> Self:
        """Parse a row of `orphans`."""
        label = WorkerLabel.parse(row)
        times = RetryTimes(row.get("left_ms"), row.get("ran_ms"))
        overdue, silent_ms = bool(row.get("overdue")), row.get("silent_ms")
        known = {"claimed_at": row.get("began"), "progress": row.get("progress")}
        known = {name: value for name, value in known.items() if value is not None}
        return cls.parse(row, label=label, overdue=overdue, silent_ms=silent_ms, times=times, known=known)


@dataclass(frozen=True, slots=True)
class UnservedStep(FoundStep):
    """Enqueued step whose handler `callable` no worker has had for too long."""

    callable: str

    @classmethod
    def of(cls, row: Row) -> Self:
        """Parse a row of `unserved`."""
        return cls.parse(row, callable=row["callable"])


@dataclass(frozen=True, slots=True)
class SweepFindings:
    """Findings of a sweep in one slice of the open tasks.

    Of the tasks under way, the slice ends with the task `last` (None if there are no more); `more` says whether further
    open tasks follow.

    `unwaiting` are suspended steps without a wait, `untimed` those whose wait has lost its timer, `unhinted` and
    `parked` steps whose wake-up message or parked result's message is lost, `forgotten` were never
    enqueued, `unpromoted` never promoted, and `unfinished` are tasks that were never evaluated.
    """

    last: str | None
    more: bool
    orphans: Sequence[Orphan]
    unserved: Sequence[UnservedStep]
    unwaiting: Sequence[FoundStep]
    untimed: Sequence[FoundStep]
    unhinted: Sequence[FoundStep]
    parked: Sequence[FoundStep]
    forgotten: Sequence[FoundStep]
    unpromoted: Sequence[FoundStep]
    unfinished: Sequence[str]

    @classmethod
    def parse(cls, answer: Row) -> Self:
        """Parse the answer of `tasker.sweep_v1` or `find_waiting_v1`, which omits empty lists."""

        def plain(name: str) -> list[FoundStep]:
            return [FoundStep.parse(row) for row in answer.get(name, ())]

        return cls(
            answer.get("last"),
            bool(answer.get("more")),
            [Orphan.of(row) for row in answer.get("orphans", ())],
            [UnservedStep.of(row) for row in answer.get("unserved", ())],
            *(
                plain("unwaiting"),
                plain("untimed"),
                plain("unhinted"),
                plain("parked"),
                plain("forgotten"),
                plain("unpromoted"),
            ),
            answer.get("unfinished", ()),
        )


@dataclass(frozen=True, slots=True)
class ParkedRow:
    """Step whose result is stored but not processed.

    `kind` is the kind of change for which it was parked; `result` is set if it may create steps, else None.
    """

    step: str
    task: str
    token: int
    worker: str | None
    template: int
    ordinal: int
    name: str
    attempt: int
    kind: str
    delay_ms: int | None
    result: Any
    namespace: str
    correlation: str
    trace: Mapping[str, Any] | None
    """Trace context with which its task was submitted."""
    publishes: bool = False
    """True if the events that the worker made are stored with it."""


@dataclass(frozen=True, slots=True)
class ParkedAnswer:
    """Parked steps among those asked for, and the steps that do not exist in this database."""

    rows: Sequence[ParkedRow]
    unknown: frozenset[str]
    rest: Sequence[str] = ()
    """Steps that did not fit into the answer and must be asked for again."""

    @classmethod
    def parse(cls, answer: Row) -> Self:
        """Parse the answer of `tasker.parked_v1`."""
        return cls(
            [ParkedRow(**row) for row in answer["items"]],
            frozenset(answer.get("unknown") or ()),
            answer.get("rest") or (),
        )
