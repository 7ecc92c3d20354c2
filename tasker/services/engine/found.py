"""What the engine answers about steps that nobody claims: those that a sweep has found, and those that are parked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

from tasker.contracts.dataclasses import dataclass

Row = Mapping[str, Any]


class WorkerLabel(NamedTuple):
    """A worker as a person knows it; what is not in the registry is None."""

    worker: str | None
    name: str | None
    host: str | None
    pid: int | None

    @classmethod
    def parse(cls, row: Row) -> Self:
        """The columns `worker` and `worker_*` of a row."""
        return cls(row.get("worker"), row.get("worker_name"), row.get("worker_host"), row.get("worker_pid"))


@dataclass(frozen=True, slots=True)
class SilentWorker:
    """A worker that has not been heard of since then, and still has its lease."""

    label: WorkerLabel
    since: str
    lease_left_ms: float

    @classmethod
    def parse(cls, row: Row) -> Self:
        """A row of `silent`."""
        return cls(WorkerLabel.parse(row), row["since"], row["lease_left_ms"])


@dataclass(frozen=True, slots=True)
class FoundStep:
    """A step that a sweep has found: `template` is its plan's identifier, `ordinal` its place in the plan."""

    step: str
    task: str
    token: int
    namespace: str
    template: int
    ordinal: int
    attempt: int

    @classmethod
    def parse(cls, row: Row, **more: Any) -> Self:
        """A row of an answer's list; `more` is what a subclass has beyond that."""
        common = row["s"], row["t"], row["k"], row["namespace"], row["template"], row["ordinal"], row["attempt"]
        return cls(*common, **more)


@dataclass(frozen=True, slots=True)
class Orphan(FoundStep):
    """A running step whose worker is gone, or that is `overdue`; `silent_ms` where the worker's lease is over."""

    label: WorkerLabel
    overdue: bool
    silent_ms: float | None

    @classmethod
    def of(cls, row: Row) -> Self:
        """A row of `orphans`."""
        label = WorkerLabel.parse(row)
        return cls.parse(row, label=label, overdue=bool(row.get("overdue")), silent_ms=row.get("silent_ms"))


@dataclass(frozen=True, slots=True)
class UnservedStep(FoundStep):
    """An enqueued step whose handler, `callable`, no worker has had for too long."""

    callable: str

    @classmethod
    def of(cls, row: Row) -> Self:
        """A row of `unserved`."""
        return cls.parse(row, callable=row["callable"])


@dataclass(frozen=True, slots=True)
class SweepFindings:
    """What a sweep has found in one slice of the open tasks.

    Of those that are under way it ends with the task `last` (None: there is no more); of all that is open there is
    `more` or not.

    Steps whose hint or whose parked result's message is lost, that nobody has enqueued or promoted, and tasks
    (`unfinished`) that nobody has evaluated.
    """

    last: str | None
    more: bool
    orphans: Sequence[Orphan]
    unserved: Sequence[UnservedStep]
    unhinted: Sequence[FoundStep]
    parked: Sequence[FoundStep]
    forgotten: Sequence[FoundStep]
    unpromoted: Sequence[FoundStep]
    unfinished: Sequence[str]

    @classmethod
    def parse(cls, answer: Row) -> Self:
        """The answer of `tasker.find_v1` or `find_waiting_v1`; empty lists are not in it."""

        def plain(name: str) -> list[FoundStep]:
            return [FoundStep.parse(row) for row in answer.get(name, ())]

        return cls(
            answer.get("last"),
            bool(answer.get("more")),
            [Orphan.of(row) for row in answer.get("orphans", ())],
            [UnservedStep.of(row) for row in answer.get("unserved", ())],
            *(plain("unhinted"), plain("parked"), plain("forgotten"), plain("unpromoted")),
            answer.get("unfinished", ()),
        )


@dataclass(frozen=True, slots=True)
class ParkedRow:
    """A step whose result is stored and not dealt with: the `kind` of change that it was parked for, and its result
    where that may create steps (None: it may not)."""

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
    """The place in a trace that its task was submitted at."""
    publishes: bool = False
    """What a worker made of its events is stored with it."""


@dataclass(frozen=True, slots=True)
class ParkedAnswer:
    """Those of some steps that are parked, and those that this database has never had."""

    rows: Sequence[ParkedRow]
    unknown: frozenset[str]
    rest: Sequence[str] = ()
    """Steps that did not fit into the answer: they are to be asked for again."""

    @classmethod
    def parse(cls, answer: Row) -> Self:
        """The answer of `tasker.parked_v1`."""
        return cls(
            [ParkedRow(**row) for row in answer["items"]],
            frozenset(answer.get("unknown") or ()),
            answer.get("rest") or (),
        )
