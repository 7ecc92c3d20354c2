"""What passes between the worker's runtime and whoever processes its results: results in, further work out."""

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
    """What an attempt came to, which must be reported."""

    claim: Claim
    plan: Plan
    duration_ms: int
    outcome: Success | Failure
    events: ResultEvents | None = None
    """What its step publishes with it; None: nothing is known of events, or the step declares none."""

    @property
    def failure(self) -> Failure | None:
        """Why it failed; None for a success."""
        return self.outcome if isinstance(self.outcome, Failure) else None

    @property
    def success(self) -> Success | None:
        """What came of it; None for a failure."""
        return self.outcome if isinstance(self.outcome, Success) else None


@dataclass(frozen=True, slots=True)
class CompletingWorker:
    """Who asks, and what it could run next: free slots, namespaces by identifier, steps that it cannot resolve."""

    worker: str
    slots: int = 0
    namespace_ids: Sequence[int] = ()
    unserved: Sequence[str] = ()
    window: int = ENQUEUE_WINDOW
    timeout_ms: int = STEP_TIMEOUT_MS
    grace_ms: int = STEP_GRACE_MS

    def args(self, slots: int | None = None) -> dict[str, Any]:
        """The caller's part of the arguments of an engine's function; `slots` in place of its own."""
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
    """What a write came to: claims handed over, tasks that ended, hints sent, a verdict on what was not accepted."""

    claims: Sequence[ClaimRow] = ()
    finished: Mapping[str, str] = field(default_factory=dict)
    """The final states of the tasks that ended."""
    sent: Mapping[str, int] = field(default_factory=dict)
    """How many hints, by namespace."""
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    """By step; one that is not here was accepted."""
    inputs: Inputs | None = None
    """What the handlers of the claims read, where the answer holds it."""
    completed: Mapping[str, int] = field(default_factory=dict)
    """The steps that this write completed, with the token of the result that they have for good."""
    grown: Mapping[str, ExpansionRecord] = field(default_factory=dict)
    """What the steps that decided have added to their tasks, by step."""
    retry_in_ms: int | None = None
    """The shortest delay of a retry that this write arranged."""
    at: str | None = None
    """The time of the database at which tasks began or ended with this write."""
    too_large: Mapping[str, TooLarge] = field(default_factory=dict)
    """Of the claims those whose inputs the database cannot answer."""

    @classmethod
    def parse(cls, answer: Answer, changes: Sequence[StepChange] = ()) -> Self:
        """What a function of the engine answered to these changes."""
        verdicts = {step: Verdict(verdict) for step, verdict in (answer.get("verdicts") or {}).items()}
        return cls(
            [ClaimRow.parse(row) for row in answer.get("claims") or ()],
            answer.get("finished") or {},
            answer.get("sent") or {},
            verdicts,
            inputs_of(answer) if "tasks" in answer else None,
            completed(changes, verdicts),
            grown(changes, verdicts),
            soonest_retry(changes),
            answer.get("at"),
            too_large_of(answer),
            **cls.more(answer),
        )

    @classmethod
    def more(cls, answer: Answer) -> dict[str, Any]:
        """The fields that the answer of this function has beyond those of all."""
        return {}

    @property
    def refused(self) -> dict[str, Verdict]:
        """The steps whose changes will never be accepted."""
        return {step: verdict for step, verdict in self.verdicts.items() if verdict.is_refusal}

    def comes_again(self, step_uuid: str) -> bool:
        """The step's change may be accepted another time: it is to be brought again."""
        verdict = self.verdicts.get(step_uuid)
        return verdict is not None and verdict.is_retryable

    def has_completed(self, claim: Claim) -> bool:
        """The result of this claim is its step's for good: a complete step never changes again (rule 2)."""
        return self.completed.get(claim.step_uuid) == claim.token

    @staticmethod
    def merged(results: Sequence[AdvanceResult]) -> AdvanceResult:
        """What several writes came to together. Of what they say about one step or task the last counts."""
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
    """Takes results and hands back what the caller can run next."""

    async def process(self, results: Sequence[Result], caller: CompletingWorker, *, wait: bool = True) -> AdvanceResult:
        """Store the results. Raises `DatabaseUnavailable`: all of them may be brought again."""
        ...
