"""Types exchanged between the worker's runtime and the processing of its results: results in, further work out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol, Self, TypeAlias

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.defaults import ENQUEUE_WINDOW, STEP_GRACE_MS, STEP_TIMEOUT_MS
from tasker.contracts.execution import Claim, Failure, Success, Verdict
from tasker.contracts.plan import Plan
from tasker.services.engine.changes import ExpansionRecord, StepChange, completed, grown, soonest, soonest_retry
from tasker.services.engine.claims import Answer, ClaimRow, Inputs, TooLarge, inputs_of, too_large_of
from tasker.services.engine.result_events import ResultEvents


@dataclass(frozen=True, slots=True)
class Result:
    """Outcome of an attempt, to be reported."""

    claim: Claim
    plan: Plan
    duration_ms: int
    outcome: Success | Failure
    events: ResultEvents | None = None
    """Events that the step publishes with the result; None if nothing is known of them, or the step declares none."""

    @property
    def failure(self) -> Failure | None:
        """Failure of the attempt, or None if it succeeded."""
        return self.outcome if isinstance(self.outcome, Failure) else None

    @property
    def success(self) -> Success | None:
        """Success of the attempt, or None if it failed."""
        return self.outcome if isinstance(self.outcome, Success) else None


@dataclass(frozen=True, slots=True)
class CompletingWorker:
    """Worker that reports results, and the work it could run next.

    It states free slots, namespaces by id, and the handlers that it cannot resolve.
    """

    worker: str
    slots: int = 0
    namespace_ids: Sequence[int] = ()
    unserved: Sequence[str] = ()
    window: int = ENQUEUE_WINDOW
    timeout_ms: int = STEP_TIMEOUT_MS
    grace_ms: int = STEP_GRACE_MS

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
    """Number of wake-up messages sent, by namespace."""
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
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
        for namespace, count in [item for each in results for item in each.sent.items()]:
            sent[namespace] = sent.get(namespace, 0) + count
        return AdvanceResult(
            claims=[claim for each in results for claim in each.claims],
            finished={task: state for each in results for task, state in each.finished.items()},
            sent=sent,
            verdicts={step: verdict for each in results for step, verdict in each.verdicts.items()},
            completed={step: token for each in results for step, token in each.completed.items()},
            grown={step: growth for each in results for step, growth in each.grown.items()},
            retry_in_ms=soonest(each.retry_in_ms for each in results),
        )


OnAdvanced: TypeAlias = Callable[[AdvanceResult], None]


class ResultSink(Protocol):
    """Receiver of results that returns the next claims of the caller."""

    async def process(self, results: Sequence[Result], caller: CompletingWorker, *, wait: bool = True) -> AdvanceResult:
        """Store the results. Raises `DatabaseUnavailable`: all of them may then be reported again."""
        ...
