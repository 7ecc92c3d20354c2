"""What passes between the worker's runtime and whoever processes its results: results in, further work out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from tasker.contracts.execution import Outcome, Verdict
from tasker.contracts.plan import Plan
from tasker.services.engine.calls import Answer


@dataclass(frozen=True, slots=True)
class Result:
    """An outcome with the plan it belongs to and its result's JSON (None for a failure)."""

    outcome: Outcome
    plan: Plan
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, and what it could run next: free slots, namespaces by identifier, steps that it cannot resolve."""

    worker: str
    slots: int = 0
    namespace_ids: Sequence[int] = ()
    unserved: Sequence[str] = ()
    window: int = 2000
    timeout_ms: int = 30_000
    grace_ms: int = 10_000

    def fields(self, slots: int | None = None) -> str:
        """The caller as the beginning of a JSON object, without its closing brace."""
        unserved = ",".join(f'"{key}"' for key in self.unserved)
        ids = ",".join(map(str, self.namespace_ids))
        free = max(0, self.slots if slots is None else slots)
        return (
            f'{{"worker":"{self.worker}","slots":{free},"namespace_ids":[{ids}],"unserved":[{unserved}],'
            f'"window":{self.window},"timeout_ms":{self.timeout_ms},"grace_ms":{self.grace_ms}'
        )


@dataclass(slots=True)
class AdvanceResult:
    """What a write answered: claims handed over, tasks that ended, results to bring again, refusals by step."""

    claims: list[dict[str, Any]] = field(default_factory=list)
    finished: dict[str, str] = field(default_factory=dict)
    again: list[Result] = field(default_factory=list)
    refused: dict[str, Verdict] = field(default_factory=dict)
    sent: dict[str, int] = field(default_factory=dict)
    retry_in_ms: int | None = None
    """The shortest delay of a retry that this write arranged."""
    complete: list[Result] = field(default_factory=list)
    """Results that this write made those of their steps for good: a complete step never changes again (rule 2)."""

    def add(self, answer: Answer) -> None:
        """Take in one answer of the engine."""
        self.claims += answer.get("claims") or ()
        self.finished.update(answer.get("finished") or {})
        for namespace, count in (answer.get("sent") or {}).items():
            self.sent[namespace] = self.sent.get(namespace, 0) + count

    def join(self, more: AdvanceResult) -> None:
        """Take in claims, ended tasks and sent hints of another write."""
        self.add({"claims": more.claims, "finished": more.finished, "sent": more.sent})


class ResultSink(Protocol):
    """Takes results and hands back what the caller can run next."""

    async def process(self, results: Sequence[Result], caller: Caller, *, wait: bool = True) -> AdvanceResult:
        """Store the results. Raises `DatabaseUnavailable`: all of them may be brought again."""
        ...
