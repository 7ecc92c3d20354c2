"""Answers of the SQL functions, and the port of eager starts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol, Self, TypeAlias

from tasker.dataclasses import dataclass
from tasker.engine.changes import StepChange
from tasker.engine.exchange import AdvanceResult, Answer
from tasker.handlers.claims import Verdict
from tasker.messaging.port import QueuedMessage


@dataclass(frozen=True, slots=True)
class ClaimAnswer(AdvanceResult):
    """Answer of a claim.

    `popped` is the number of wake-up messages taken; `release` has the ids of namespaces with room for backlogged
    steps.
    """

    popped: int = 0
    release: Sequence[int] = ()
    taken: Sequence[QueuedMessage] = ()
    """Messages to acknowledge, if the messaging backend is not in the database."""
    later: Mapping[str, float] = field(default_factory=dict)
    """Steps that were sent again, with the milliseconds after which their messages are visible."""
    unclaimable: Sequence[Mapping[str, Any]] = ()
    """Steps that the database refuses to claim: step, task, attempt, reason."""

    @classmethod
    def more(cls, answer: Answer) -> dict[str, Any]:
        return {
            "popped": answer.get("popped") or 0,
            "release": answer.get("release") or (),
            "later": answer.get("later") or {},
            "unclaimable": answer.get("unclaimable") or (),
        }

    @property
    def unknown(self) -> set[str]:
        """Step ids that do not exist in this database."""
        return {step for step, verdict in self.verdicts.items() if verdict is Verdict.UNKNOWN}


@dataclass(frozen=True, slots=True)
class BacklogAnswer(AdvanceResult):
    """Answer of a release of backlogged steps: the number of steps for which there was room, and whether some were
    passed over because other transactions have locked their tasks."""

    released: int = 0
    passed_over: bool = False

    @classmethod
    def more(cls, answer: Answer) -> dict[str, Any]:
        return {"released": answer.get("released") or 0, "passed_over": bool(answer.get("passed_over"))}


@dataclass(frozen=True, slots=True)
class DueAnswer(AdvanceResult):
    """Answer of a promotion of due steps: how many were promoted, whether locked ones were skipped, and when the next
    is due. `keeper`: this process is the timekeeper, the one that watches the timers for all."""

    promoted: int = 0
    passed_over: bool = False
    next_due_ms: float | None = None
    keeper: bool = True
    schedules: Sequence[str] = ()
    """Schedules that are due."""
    unplanned: Sequence[StepChange] = ()
    """Failures after which their tasks go on, to be planned and written."""
    unmatched: bool = False
    """True if events or waits have not looked for each other."""
    children: bool = False
    """True if child tasks are to be started or counted."""

    @classmethod
    def more(cls, answer: Answer) -> dict[str, Any]:
        return {
            "promoted": answer.get("promoted") or 0,
            "passed_over": bool(answer.get("passed_over")),
            "next_due_ms": answer.get("next_due_ms"),
            "keeper": answer.get("keeper", True),
            "schedules": answer.get("schedules") or (),
            "unplanned": answer.get("unplanned") or (),
            "unmatched": bool(answer.get("unmatched")),
            "children": bool(answer.get("children")),
        }


@dataclass(frozen=True, slots=True)
class EvaluateAnswer(AdvanceResult):
    """Answer of an evaluation of tasks: the number of tasks that changed state."""

    settled: int = 0

    @classmethod
    def more(cls, answer: Answer) -> dict[str, Any]:
        return {"settled": answer.get("settled") or 0}


@dataclass(frozen=True, slots=True)
class RepairAnswer(AdvanceResult):
    """Answer of the repairs that a slice of open tasks does not cover.

    `repaired` counts the repairs by kind, `marks_left` says that more pause marks need a change, and `slices_left` that
    more backlogged steps follow after this slice.
    """

    repaired: Mapping[str, int] = field(default_factory=dict)
    marks_left: bool = False
    slices_left: bool = False

    @classmethod
    def more(cls, answer: Answer) -> dict[str, Any]:
        return {
            "repaired": answer.get("repaired") or {},
            "marks_left": bool(answer.get("more")),
            "slices_left": bool(answer.get("slices")),
        }


@dataclass(frozen=True, slots=True)
class StaleAnswer(AdvanceResult):
    """Answer of one slice of the search for stale tasks: whether a slice was searched, the stale tasks, and the
    position from which to continue."""

    searched: bool = False
    stale: Sequence[Mapping[str, Any]] = ()
    last: str | None = None

    @classmethod
    def more(cls, answer: Answer) -> dict[str, Any]:
        return {"searched": answer["searched"], "stale": answer.get("stale") or (), "last": answer.get("last")}


@dataclass(frozen=True, slots=True)
class ReplayAnswer(AdvanceResult):
    """Answer of one turn of a replay: its id (None if no replay was due), and the number of tasks handled."""

    replay: str | None = None
    done: int = 0

    @classmethod
    def more(cls, answer: Answer) -> dict[str, Any]:
        return {"replay": answer.get("replay"), "done": answer.get("done") or 0}


@dataclass(frozen=True, slots=True)
class SubmitAnswer(AdvanceResult):
    """Answer of a submission: the tasks created, and the number of steps with which each begins."""

    created: frozenset[str] = frozenset()
    steps: int = 0
    forgotten: bool = False
    """True if the database does not have the intended template; nothing was created."""
    running: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """For each task that was not created: id, state and steps of the running task with the same unique key."""

    debounced: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """The same for those that were merged into a task with the same debounce key."""

    too_deep: frozenset[str] = frozenset()
    """Tasks that were not created because they would be too many links below the first task of their line."""

    @classmethod
    def more(cls, answer: Answer) -> dict[str, Any]:
        forgotten = bool(answer.get("forgotten"))
        return {
            "created": frozenset(answer["created"]),
            "steps": answer.get("steps") or 0,
            "forgotten": forgotten,
            "running": answer.get("running") or {},
            "debounced": answer.get("debounced") or {},
            "too_deep": frozenset(answer.get("too_deep") or ()),
        }


@dataclass(frozen=True, slots=True)
class FireAnswer(SubmitAnswer):
    """Answer of a fire of a schedule: the tasks created, and when its timer is due. `moved`: the schedule changed since
    it was read, and nothing was written."""

    moved: bool = False
    due_ms: float | None = None

    @classmethod
    def more(cls, answer: Answer) -> dict[str, Any]:
        submitted = SubmitAnswer.more({"created": (), **answer})
        return {**submitted, "moved": bool(answer.get("moved")), "due_ms": answer.get("due_ms")}


@dataclass(frozen=True, slots=True)
class StartAnswer(SubmitAnswer):
    """Answer of a start of child tasks. `moved`: another process was faster, and nothing was written."""

    moved: bool = False

    @classmethod
    def more(cls, answer: Answer) -> dict[str, Any]:
        return {**SubmitAnswer.more(answer), "moved": bool(answer.get("moved"))}


@dataclass(frozen=True, slots=True)
class GatherAnswer(AdvanceResult):
    """Answer of a count of ended children. `busy`: another process has their step, or its task, locked."""

    busy: bool = False
    unplanned: Sequence[StepChange] = ()
    """Failure of the step after which its task goes on, to be planned and written."""

    @classmethod
    def more(cls, answer: Answer) -> dict[str, Any]:
        return {"busy": bool(answer.get("busy")), "unplanned": answer.get("unplanned") or ()}


@dataclass(frozen=True, slots=True)
class ParkAnswer(AdvanceResult):
    """Answer of parking results: the pointers to the parked results, for the orchestrators."""

    parked: Sequence[Mapping[str, Any]] = ()

    @classmethod
    def more(cls, answer: Answer) -> dict[str, Any]:
        return {"parked": answer.get("parked") or ()}


@dataclass(frozen=True, slots=True)
class OperatorAnswer(AdvanceResult):
    """Answer of an operator action on a step: the step's state before it, or None if the task has no such step."""

    state: str | None = None

    @classmethod
    def more(cls, answer: Answer) -> dict[str, Any]:
        return {"state": answer.get("state")}

    @property
    def verdict(self) -> Verdict | None:
        """Reason why nothing was done; None if the action was carried out."""
        return next(iter(self.verdicts.values()), None)


@dataclass(frozen=True, slots=True)
class RetryAnswer(AdvanceResult):
    """Answer of a retry of a task.

    `state` is the task's state before the retry (None if there is no such task), `reset` names the steps that run
    again, and `left` those that were not reset.
    """

    state: str | None = None
    reset: Sequence[str] = ()
    left: Sequence[str] = ()

    @classmethod
    def more(cls, answer: Answer) -> dict[str, Any]:
        return {key: answer[key] for key in ("state", "reset", "left") if key in answer}


@dataclass(frozen=True, slots=True)
class RerunAnswer(AdvanceResult):
    """Answer of a rerun that reuses results of another task: the numbers of steps and of reused steps.

    `created` is False if there is no such task, or if its graph has changed.
    """

    created: bool = False
    steps: int = 0
    reused: int = 0

    @classmethod
    def more(cls, answer: Answer) -> dict[str, Any]:
        return {"created": "created" in answer, "steps": answer.get("steps") or 0, "reused": answer.get("reused") or 0}


@dataclass(frozen=True, slots=True)
class CancelAnswer:
    """Answer of a cancellation.

    `former` is the task's state before it (None if nothing was cancelled); `state` is the state now (None if there is
    no such task), and `outcome` that of a compensation which goes on, or has ended, instead.
    """

    former: str | None
    state: str | None
    outcome: str | None = None

    @classmethod
    def parse(cls, answer: Answer) -> Self:
        """Parse the answer of `tasker.cancel_v1`."""
        return cls(answer.get("from"), answer.get("state"), answer.get("outcome"))


@dataclass(frozen=True, slots=True)
class CompensateAnswer:
    """Answer of an operator's compensation.

    `former` is the task's state before it (None if it does not begin); otherwise `state`, `outcome` and `undoable`
    (whether a complete step has a compensation) say why; `state` is None if there is no such task.
    """

    former: str | None
    state: str | None
    outcome: str | None
    undoable: bool

    @classmethod
    def parse(cls, answer: Answer) -> Self:
        """Parse the answer of `tasker.compensate_v1`."""
        return cls(answer.get("from"), answer.get("state"), answer.get("outcome"), bool(answer.get("undoable")))


@dataclass(frozen=True, slots=True)
class PauseAnswer:
    """Answer of a pause: whether it began now, and whether more backlogged steps must be marked.

    `missing` names what does not exist of the target; `final` is the state of a task that has already ended.
    """

    paused: bool
    marks_left: bool
    missing: str | None
    final: str | None

    @classmethod
    def parse(cls, answer: Answer) -> Self:
        """Parse the answer of `tasker.pause_v1` or `pause_queue_v1`."""
        return cls(bool(answer.get("paused")), bool(answer.get("more")), answer.get("missing"), answer.get("final"))


@dataclass(frozen=True, slots=True)
class ResumeAnswer:
    """Answer of a resume: whether there was a pause, and how many ready steps can start so far.

    `marks_left` says that more steps may follow; `missing` names what does not exist of the target.
    """

    resumed: bool
    held: int
    marks_left: bool
    missing: str | None

    @classmethod
    def parse(cls, answer: Answer) -> Self:
        """Parse the answer of `tasker.resume_v1` or `resume_queue_v1`."""
        return cls(bool(answer["resumed"]), answer.get("held") or 0, bool(answer.get("more")), answer.get("missing"))


StartableSubmission: TypeAlias = Callable[[Mapping[str, Any]], Awaitable[SubmitAnswer]]
"""Function that submits with these arguments."""


class EagerStarter(Protocol):
    """Worker in the submitting process."""

    async def start(self, submit: StartableSubmission, roots: int, args: Mapping[str, Any]) -> SubmitAnswer:
        """Submit, reserving slots for `roots` steps, and start the steps handed off by the answer.

        The worker adds its own arguments (`CompletingWorker.args`). Raises as `submit`.
        """
        ...
