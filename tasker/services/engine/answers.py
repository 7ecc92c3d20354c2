"""What each of the engine's functions answers beyond what all of those answer that move steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Self

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.execution import Verdict
from tasker.contracts.messaging import QueuedMessage
from tasker.services.engine.claims import Answer
from tasker.services.engine.exchange import AdvanceResult


@dataclass(frozen=True, slots=True)
class ClaimAnswer(AdvanceResult):
    """Of a claim: `popped` is how many hints were taken, `release` names namespaces with room for held steps."""

    popped: int = 0
    release: Sequence[int] = ()
    taken: Sequence[QueuedMessage] = ()
    """Messages that are to be acknowledged, where they do not live in the database."""
    unclaimable: Sequence[Mapping[str, Any]] = ()
    """Steps that the database refuses to claim: step, task, attempt, reason."""

    @classmethod
    def more(cls, answer: Answer) -> dict[str, Any]:
        """As `AdvanceResult.more`."""
        return {
            "popped": answer.get("popped") or 0,
            "release": answer.get("release") or (),
            "unclaimable": answer.get("unclaimable") or (),
        }

    @property
    def unknown(self) -> set[str]:
        """The steps that this database has never had."""
        return {step for step, verdict in self.verdicts.items() if verdict is Verdict.UNKNOWN}


@dataclass(frozen=True, slots=True)
class BacklogAnswer(AdvanceResult):
    """Of held steps for which there was room: how many."""

    released: int = 0

    @classmethod
    def more(cls, answer: Answer) -> dict[str, Any]:
        """As `AdvanceResult.more`."""
        return {"released": answer.get("released") or 0}


@dataclass(frozen=True, slots=True)
class DueAnswer(AdvanceResult):
    """Of retries that were due: how many, whether others are held by somebody, and when the next is due."""

    promoted: int = 0
    passed_over: bool = False
    next_due_ms: float | None = None

    @classmethod
    def more(cls, answer: Answer) -> dict[str, Any]:
        """As `AdvanceResult.more`."""
        return {
            "promoted": answer.get("promoted") or 0,
            "passed_over": bool(answer.get("passed_over")),
            "next_due_ms": answer.get("next_due_ms"),
        }


@dataclass(frozen=True, slots=True)
class EvaluateAnswer(AdvanceResult):
    """Of an evaluation of tasks: how many have moved."""

    settled: int = 0

    @classmethod
    def more(cls, answer: Answer) -> dict[str, Any]:
        """As `AdvanceResult.more`."""
        return {"settled": answer.get("settled") or 0}


@dataclass(frozen=True, slots=True)
class RepairAnswer(AdvanceResult):
    """Of a repair of what no slice of open tasks shows: the repairs by kind, whether more marks of pauses are to be
    changed, and whether there are held steps behind this slice."""

    repaired: Mapping[str, int] = field(default_factory=dict)
    marks_left: bool = False
    slices_left: bool = False

    @classmethod
    def more(cls, answer: Answer) -> dict[str, Any]:
        """As `AdvanceResult.more`."""
        return {
            "repaired": answer.get("repaired") or {},
            "marks_left": bool(answer.get("more")),
            "slices_left": bool(answer.get("slices")),
        }


@dataclass(frozen=True, slots=True)
class StaleAnswer(AdvanceResult):
    """Of a slice of the search for stale tasks: whether there was one, what was found, and where it goes on."""

    searched: bool = False
    stale: Sequence[Mapping[str, Any]] = ()
    last: str | None = None

    @classmethod
    def more(cls, answer: Answer) -> dict[str, Any]:
        """As `AdvanceResult.more`."""
        return {"searched": answer["searched"], "stale": answer.get("stale") or (), "last": answer.get("last")}


@dataclass(frozen=True, slots=True)
class ReplayAnswer(AdvanceResult):
    """Of a turn of a replay: which one (None: none was due), and how many tasks were dealt with."""

    replay: str | None = None
    done: int = 0

    @classmethod
    def more(cls, answer: Answer) -> dict[str, Any]:
        """As `AdvanceResult.more`."""
        return {"replay": answer.get("replay"), "done": answer.get("done") or 0}


@dataclass(frozen=True, slots=True)
class SubmitAnswer(AdvanceResult):
    """Of a submission: the tasks that were created, and how many steps each begins with."""

    created: frozenset[str] = frozenset()
    steps: int = 0
    forgotten: bool = False
    """The database does not have the template that was meant; nothing was created."""

    @classmethod
    def more(cls, answer: Answer) -> dict[str, Any]:
        """As `AdvanceResult.more`."""
        forgotten = bool(answer.get("forgotten"))
        return {"created": frozenset(answer["created"]), "steps": answer.get("steps") or 0, "forgotten": forgotten}


@dataclass(frozen=True, slots=True)
class ParkAnswer(AdvanceResult):
    """Of results that were parked: the pointers to them, for the orchestrators."""

    parked: Sequence[Mapping[str, Any]] = ()

    @classmethod
    def more(cls, answer: Answer) -> dict[str, Any]:
        """As `AdvanceResult.more`."""
        return {"parked": answer.get("parked") or ()}


@dataclass(frozen=True, slots=True)
class OperatorAnswer(AdvanceResult):
    """Of an operator's action on a step: the state in which it found it; None where the task has no such step."""

    state: str | None = None

    @classmethod
    def more(cls, answer: Answer) -> dict[str, Any]:
        """As `AdvanceResult.more`."""
        return {"state": answer.get("state")}

    @property
    def verdict(self) -> Verdict | None:
        """Why nothing was done; None: it was."""
        return next(iter(self.verdicts.values()), None)


@dataclass(frozen=True, slots=True)
class RetryAnswer(AdvanceResult):
    """Of a retry of a task: the state in which it found it (None: there is no such task), the names of the steps that
    run again, and of those that were left."""

    state: str | None = None
    reset: Sequence[str] = ()
    left: Sequence[str] = ()

    @classmethod
    def more(cls, answer: Answer) -> dict[str, Any]:
        """As `AdvanceResult.more`."""
        return {key: answer[key] for key in ("state", "reset", "left") if key in answer}


@dataclass(frozen=True, slots=True)
class RerunAnswer(AdvanceResult):
    """Of a task that begins with what another has done: how many steps it has, and how many of them are reused.

    `created` is False where there is no such task, or its graph has changed.
    """

    created: bool = False
    steps: int = 0
    reused: int = 0

    @classmethod
    def more(cls, answer: Answer) -> dict[str, Any]:
        """As `AdvanceResult.more`."""
        return {"created": "created" in answer, "steps": answer.get("steps") or 0, "reused": answer.get("reused") or 0}


@dataclass(frozen=True, slots=True)
class CancelAnswer:
    """Of a cancellation: the state before it (None: nothing was cancelled), and now; None: there is no such task."""

    former: str | None
    state: str | None

    @classmethod
    def parse(cls, answer: Answer) -> Self:
        """The answer of `tasker.cancel_v1`."""
        return cls(answer.get("from"), answer.get("state"))


@dataclass(frozen=True, slots=True)
class PauseAnswer:
    """Of a pause: whether it began now, and whether more held steps are to be marked; what is `missing` where the
    target does not exist, the `final` state of a task that has ended."""

    paused: bool
    marks_left: bool
    missing: str | None
    final: str | None

    @classmethod
    def parse(cls, answer: Answer) -> Self:
        """The answer of `tasker.pause_v1` or `pause_queue_v1`."""
        return cls(bool(answer.get("paused")), bool(answer.get("more")), answer.get("missing"), answer.get("final"))


@dataclass(frozen=True, slots=True)
class ResumeAnswer:
    """Of the end of a pause: whether there was one, how many ready steps may go on so far, whether there may be more of
    them, what is `missing`."""

    resumed: bool
    held: int
    marks_left: bool
    missing: str | None

    @classmethod
    def parse(cls, answer: Answer) -> Self:
        """The answer of `tasker.resume_v1` or `resume_queue_v1`."""
        return cls(bool(answer["resumed"]), answer.get("held") or 0, bool(answer.get("more")), answer.get("missing"))
