"""Values that pass between a worker and the engine: claims, inputs, results and their verdicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, TypeAlias

from tasker.dataclasses import dataclass
from tasker.engine.changes import ExpansionRecord, StepChange, completed, grown, soonest, soonest_retry
from tasker.handlers.claims import Claim, Failure, HandlerEvent, Success, Verdict
from tasker.json_values import JsonText
from tasker.logging.trace_context import TraceContext
from tasker.settings.execution import Execution, Lease
from tasker.settings.queues import HandlerDispatch
from tasker.template.plan import Plan

CLAIM_BYTES = 16 * 1024 * 1024
"""Maximum size of the inputs, results or events in one answer of the database, unless a single one is larger."""
MARK_SLICE = 2000
"""Number of backlogged steps whose pause marks one transaction changes."""
REPLAY_STEPS = 1000
"""Number of steps that one transaction of a replay resets, or all of one task."""

if TYPE_CHECKING:
    from tasker.handlers.events.publisher import BasePublisher


Answer = Mapping[str, Any]


class ClaimRow(NamedTuple):
    """Step that the caller may run now: `template` is the id of its plan, `ordinal` its position in the plan."""

    step: str
    task: str
    name: str
    template: int
    ordinal: int
    token: int
    attempt: int
    inputs: Mapping[str, Any] | None = None
    checkpoint: Mapping[str, Any] | None = None
    apart: bool = False
    """True if two workers were lost while running the step: it is isolated in a child process, if the worker can."""
    ran_ms: int | None = None
    """Time since the step's first attempt began, for further attempts of a step with `max_elapsed`."""
    waited_ms: float | None = None
    """Time since the step was enqueued or, in an ordered namespace, entered the backlog; None for a hand-off."""
    later: bool = False
    """True if its own inputs and checkpoint did not fit into the answer and must be read separately."""

    @classmethod
    def parse(cls, row: Answer) -> ClaimRow:
        """Parse a row of `claims`."""
        return cls(
            row["step"],
            row["task"],
            row["name"],
            row["template"],
            row["ordinal"],
            row["token"],
            row["attempt"],
            row.get("inputs"),
            row.get("checkpoint"),
            bool(row.get("apart")),
            row.get("ran_ms"),
            row.get("waited_ms"),
            bool(row.get("later")),
        )


@dataclass(slots=True)
class TaskInputs:
    """Task as the handlers of its steps see it.

    `results` maps a step name to (ordinal of the template step, result), and grows while the object is cached.
    """

    context: Mapping[str, Any]
    correlation_id: str
    trace: TraceContext | None = None
    results: dict[str, tuple[int, Any]] = field(default_factory=dict)
    decided: set[str] = field(default_factory=set)
    """Steps whose created steps are known."""
    created: dict[int, list[str]] = field(default_factory=dict)
    """Names of the steps created by `decided`, by the ordinal of the template step."""
    growths: dict[str, ExpansionRecord] = field(default_factory=dict)
    """Expansions of the graph, by `decided`."""
    lists: dict[str, list[Any]] = field(default_factory=dict)
    """Evaluated lists of steps with `for_each`, by their expressions."""
    ends_at: float | None = None
    """Deadline of the task by this machine's monotonic clock, or None."""
    failures: Mapping[str, Mapping[str, Any]] | None = None
    """Errors of the steps that the task goes on without, by name."""
    outcome: Mapping[str, Any] | None = None
    """Outcome of a task at rest, for the steps of `finally` (`tasker.outcome_at_rest`)."""
    uses: int = 0
    """Number of steps started with this object."""

    @classmethod
    def parse(cls, row: Answer, results: dict[str, tuple[int, Any]]) -> TaskInputs:
        """Parse the parts of an answer that describe one task."""
        trace = row.get("trace")
        trace = TraceContext(**trace) if trace else None
        left_ms = row.get("left_ms")
        ends_at = None if left_ms is None else monotonic() + left_ms / 1000
        return cls(
            row["context"],
            row["correlation"],
            trace,
            results,
            ends_at=ends_at,
            failures=row.get("failures"),
            outcome=row.get("outcome"),
        )


Inputs: TypeAlias = Mapping[str, TaskInputs]
"""Handler inputs, by task."""


class TooLarge(NamedTuple):
    """Size of a step's inputs that the database cannot return, with the task's correlation id and trace."""

    bytes: int
    results: int
    largest: Sequence[tuple[str, int]]
    """Names of ancestors and the sizes of their results."""
    correlation_id: str
    trace: TraceContext | None = None

    @classmethod
    def parse(cls, row: Answer) -> TooLarge:
        """Parse a row of `too_large`."""
        trace = TraceContext(**row["trace"]) if row.get("trace") else None
        largest = [(name, size) for name, size in row["largest"]]
        return cls(row["bytes"], row["results"], largest, row["correlation"], trace)


def too_large_of(answer: Answer) -> dict[str, TooLarge]:
    """Return the steps whose inputs did not fit into an answer."""
    return {step: TooLarge.parse(row) for step, row in (answer.get("too_large") or {}).items()}


def inputs_of(answer: Answer) -> Inputs:
    """Parse the inputs from the answer of `tasker.inputs_v1`, or of a claim, which has the same keys."""
    results = answer.get("results") or {}
    return {task: TaskInputs.parse(row, results.get(task) or {}) for task, row in (answer.get("tasks") or {}).items()}


@dataclass(frozen=True, slots=True)
class AnnouncedEvents:
    """One event as subscribers get it, or the reason why it is withheld.

    `payload` is None if the engine takes it from the result; `publisher` is notified once the event is accepted.
    """

    event: Mapping[str, Any] | None = None
    publisher: BasePublisher | None = None
    payload: JsonText | None = None
    metadata: JsonText | None = None
    withheld: str | None = None
    took_ms: float = 0.0
    """Time it took to make the event, in milliseconds."""

    def stored(self, delivery_mode: str) -> dict[str, Any] | None:
        """Return the arguments for `tasker.write_events`, or None if the event follows from the result alone."""
        if self.withheld is not None or self.event is None:
            return {"w": self.withheld or "no task was created from it"}
        if delivery_mode == "durable" and self.payload is None and self.publisher is None:
            return None
        details = {"p": self.payload, "m": self.metadata, "by": self.event["metadata"]["fired_by"]}
        return {"id": self.event["event_id"], **{name: value for name, value in details.items() if value is not None}}


@dataclass(frozen=True, slots=True)
class ResultEvents:
    """Events of one result: `stored` by their numbers, `here` those to publish in this process.

    Events that the handler published itself are numbered after those that its step declares.
    """

    stored: Mapping[str, Any] = field(default_factory=dict)
    here: tuple[tuple[str, AnnouncedEvents], ...] = ()
    """Pairs of delivery mode and event, in the order of their numbers."""

    def and_published(
        self, announced: AnnouncedEvents, number: int, event: HandlerEvent, *, deliver: bool
    ) -> ResultEvents:
        """Return these events and one that the handler published itself; `deliver` adds it to `here`.

        The engine gets each with its condition, because only the engine knows which outcome is accepted.
        """
        event_fields = {"n": event.name, "d": event.delivery_mode, "c": event.condition}
        stored = (
            {}
            if event.delivery_mode == "fast"
            else {str(number): {**(announced.stored("durable") or {}), **event_fields}}
        )
        here = ((event.delivery_mode, announced),) if deliver and announced.event is not None else ()
        return ResultEvents({**self.stored, **stored}, (*self.here, *here))

    def and_(self, announced: AnnouncedEvents, number: int, delivery_mode: str) -> ResultEvents:
        """Return these events and one more."""
        stored = None if delivery_mode == "fast" else announced.stored(delivery_mode)
        has_event = announced.event is not None
        return ResultEvents(
            self.stored if stored is None else {**self.stored, str(number): stored},
            (*self.here, (delivery_mode, announced)) if has_event else self.here,
        )


@dataclass(frozen=True, slots=True)
class Result:
    """Outcome of an attempt, to be reported."""

    claim: Claim
    plan: Plan
    duration_ms: int
    outcome: Success | Failure
    events: ResultEvents | None = None
    """Events that the step publishes with the result; None if nothing is known of them, or the step declares none."""
    ahead: tuple[Result, ...] = ()
    """Results of dependents that were evaluated with this one: stored in the same write, if nothing forbids it."""
    growths: Mapping[str, ExpansionRecord] | None = None
    """Expansions of the task that this process knows, by the step that decided; None if it knows nothing of it."""
    stored: AdvanceResult | None = None
    """Answer to the write that has stored it on its handler's connection; None: it is still to be written."""
    on_stored: Callable[[], None] | None = None
    """Called once the result of a step that ran ahead is stored."""

    @property
    def failure(self) -> Failure | None:
        """Failure of the attempt, or None if it succeeded."""
        return self.outcome if isinstance(self.outcome, Failure) else None

    @property
    def success(self) -> Success | None:
        """Success of the attempt, or None if it failed."""
        return self.outcome if isinstance(self.outcome, Success) else None


@dataclass(frozen=True, slots=True)
class PreparedWrite:
    """Write of one result on a connection of its handler."""

    result: Result
    changes: tuple[StepChange, ...]
    expression: str
    """Call of the engine function as an SQL expression with one argument, `{}`."""
    args: Mapping[str, Any]
    text: str
    """The arguments as JSON."""


@dataclass(frozen=True, slots=True)
class CompletingWorker:
    """Worker that reports results, and the work it could run next.

    It states free slots, namespaces by id, and the handlers that it cannot resolve.
    """

    worker: str
    slots: int = 0
    namespace_ids: Sequence[int] = ()
    unserved: Sequence[str] = ()
    window: int = Execution.enqueue_window
    timeout_ms: int = HandlerDispatch.handler_timeout_ms
    grace_ms: int = Lease.grace_ms

    def args(self, slots: int | None = None) -> dict[str, Any]:
        """Return the caller's part of an engine function's arguments; `slots` overrides the worker's own number."""
        return {
            "worker": self.worker,
            "slots": max(0, self.slots if slots is None else slots),
            "namespace_ids": self.namespace_ids,
            "unserved": self.unserved,
            "window": self.window,
            "timeout_ms": self.timeout_ms,
            "grace_ms": self.grace_ms,
        }


@dataclass(frozen=True, slots=True)
class AdvanceResult:
    """Outcome of a write: claims handed off, tasks that ended, messages sent, and verdicts on changes not accepted."""

    claims: Sequence[ClaimRow] = ()
    finished: Mapping[str, str] = field(default_factory=dict)
    """Final states of the tasks that ended, by task."""
    sent: Mapping[str, int] = field(default_factory=dict)
    """Number of messages sent, by namespace; 0 if only the workers of an ordered namespace have to be woken."""
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    """Verdicts by step; a step that is not in it was accepted."""
    inputs: Inputs | None = None
    """Handler inputs of the claims, if the answer has them."""
    completed: Mapping[str, int] = field(default_factory=dict)
    """Steps completed by this write, with the token of their final result."""
    grown: Mapping[str, ExpansionRecord] = field(default_factory=dict)
    """Expansions made by the steps that decided, by step."""
    retry_in_ms: int | None = None
    """Milliseconds until the first step is due that waits since this write, for a retry or for its delay."""
    at: str | None = None
    """Database time at which tasks began or ended with this write."""
    too_large: Mapping[str, TooLarge] = field(default_factory=dict)
    """Claimed steps whose inputs the database cannot return."""

    @classmethod
    def parse(cls, answer: Answer, changes: Sequence[StepChange] = ()) -> Self:
        """Parse the answer of an engine function to these changes."""
        verdicts = {step: Verdict(verdict) for step, verdict in (answer.get("verdicts") or {}).items()}
        return cls(
            [ClaimRow.parse(row) for row in answer.get("claims") or ()],
            answer.get("finished") or {},
            answer.get("sent") or {},
            verdicts,
            inputs_of(answer) if "tasks" in answer else None,
            completed(changes, verdicts),
            grown(changes, verdicts),
            soonest([soonest_retry(changes), answer.get("begins_in_ms")]),
            answer.get("at"),
            too_large_of(answer),
            **cls.more(answer),
        )

    @classmethod
    def more(cls, answer: Answer) -> dict[str, Any]:
        """Return the fields that the answer of this function has in addition."""
        return {}

    @property
    def refused(self) -> dict[str, Verdict]:
        """Steps whose changes will never be accepted."""
        return {step: verdict for step, verdict in self.verdicts.items() if verdict.is_refusal}

    def comes_again(self, step_uuid: str) -> bool:
        """Return True if the step's change may be accepted later and must be reported again."""
        verdict = self.verdicts.get(step_uuid)
        return verdict is not None and verdict.is_retryable

    def has_completed(self, claim: Claim) -> bool:
        """Return True if the result of this claim is the final one: a complete step never changes again (rule 2)."""
        return self.completed.get(claim.step_uuid) == claim.token

    @staticmethod
    def merged(results: Sequence[AdvanceResult]) -> AdvanceResult:
        """Merge the outcomes of several writes. If two describe the same step or task, the last one wins."""
        if len(results) == 1:
            return results[0]
        sent: dict[str, int] = {}
        for namespace, count in [item for result in results for item in result.sent.items()]:
            sent[namespace] = sent.get(namespace, 0) + count
        return AdvanceResult(
            claims=[claim for result in results for claim in result.claims],
            finished={task: state for result in results for task, state in result.finished.items()},
            sent=sent,
            verdicts={step: verdict for result in results for step, verdict in result.verdicts.items()},
            completed={step: token for result in results for step, token in result.completed.items()},
            grown={step: growth for result in results for step, growth in result.grown.items()},
            retry_in_ms=soonest(result.retry_in_ms for result in results),
            at=next((result.at for result in reversed(results) if result.at is not None), None),
        )


OnAdvanced: TypeAlias = Callable[[AdvanceResult], None]


class ResultSink(Protocol):
    """Receiver of results that returns the next claims of the caller."""

    async def process(self, results: Sequence[Result], caller: CompletingWorker, *, wait: bool = True) -> AdvanceResult:
        """Store the results. Raises `DatabaseUnavailable`: all of them may then be reported again."""
        ...
