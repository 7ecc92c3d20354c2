"""The processor of results: from what attempts came to, to new states, in as few transactions as there are reasons for.

Called by the worker's process itself (result path `inline`) or by an orchestrator with parked results (`queued`).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence

from tasker.contracts.clock import Random
from tasker.contracts.execution import Failure, Outcome, Verdict
from tasker.db.connection import DataRefused
from tasker.errors import LockTimeout
from tasker.orchestration.changes import Change, change_of, items_text
from tasker.orchestration.expansion import expands, plan_expansion
from tasker.orchestration.halving import halved
from tasker.services.engine.calls import Answer, Engine
from tasker.services.engine.exchange import AdvanceResult, Caller, Result

_log = logging.getLogger("tasker.orchestration")

MAX_REPLANS = 20
"""How often an expansion is planned again because the graph changed meanwhile, before it waits for the next flush."""


class Processor:
    """Stores results and moves tasks on. Idempotent by token: a batch whose answer was lost may be brought again."""

    def __init__(self, engine: Engine, random: Random) -> None:
        self._engine = engine
        self._random = random

    async def process(self, results: Sequence[Result], caller: Caller, *, wait: bool = True) -> AdvanceResult:
        """Store the results, hand up to `caller.slots` ready steps back.

        With `wait` False, results of tasks that somebody else is changing come back in `again`. Raises
        `DatabaseUnavailable`; the whole batch may then be brought again.
        """
        advanced = AdvanceResult()
        plain = [result for result in results if not expands(result.plan, result.outcome)]
        if plain:
            await self._write(plain, caller, advanced, wait)
        for result in results:
            if expands(result.plan, result.outcome):
                await self._expand(result, caller, advanced, wait)
        return advanced

    async def _write(self, results: Sequence[Result], caller: Caller, advanced: AdvanceResult, wait: bool) -> None:
        async def write(part: Sequence[Result]) -> None:
            changes = [self._change(result) for result in part]
            answer = await self.bring(changes, caller, caller.slots - len(advanced.claims), wait)
            delays = (advanced.retry_in_ms, *(change.delay_ms for change in changes))
            advanced.retry_in_ms = min((ms for ms in delays if ms is not None), default=None)
            self._judge(answer, changes, part, advanced)

        await halved(results, write, lambda result, error: self._refuse(result, caller, advanced, error))

    async def _refuse(self, result: Result, caller: Caller, advanced: AdvanceResult, error: DataRefused) -> None:
        """What the database does not store fails its step (rule 5)."""
        advanced.refused[result.outcome.claim.step_uuid] = Verdict.NOT_STORABLE
        if (failure := not_storable(result, error)) is not None:
            await self._write([failure], caller, advanced, True)

    def _change(self, result: Result) -> Change:
        step = result.plan.by_name[result.outcome.claim.template_step]
        return change_of(result.outcome, result.text, step, self._random.random())

    async def apply(
        self,
        changes: Sequence[Change],
        caller: Caller,
        *,
        slots: int = 0,
        wait: bool = True,
        repairs: str | None = None,
    ) -> Answer:
        """Bring changes to the engine as they are; its answer. `repairs` is the kind of repair that they count as."""
        kind = f',"repairs":"{repairs}"' if repairs else ""
        text = f'{caller.fields(slots)}{kind},"wait":{"true" if wait else "false"},"items":{items_text(changes)}}}'
        return await self._engine.call("advance", text)

    async def bring(
        self,
        changes: Sequence[Change],
        caller: Caller,
        slots: int = 0,
        wait: bool = True,
        repairs: str | None = None,
    ) -> Answer:
        """As `apply`; when somebody keeps one of the tasks for too long, the others do not wait for it (`busy`)."""
        try:
            return await self.apply(changes, caller, slots=slots, wait=wait, repairs=repairs)
        except LockTimeout:
            if not wait:
                raise
            return await self.apply(changes, caller, slots=slots, wait=False, repairs=repairs)

    async def _expand(self, result: Result, caller: Caller, advanced: AdvanceResult, wait: bool) -> None:
        """Expansions go one by one, in calls of their own, planned again when the graph has changed (rule 8)."""
        for _ in range(MAX_REPLANS):
            change = await plan_expansion(self._engine, result.plan, result.outcome, result.text or "null")
            try:
                answer = await self.bring([change], caller, caller.slots - len(advanced.claims), wait)
            except DataRefused as error:
                await self._refuse(result, caller, advanced, error)
                return
            if (answer.get("verdicts") or {}).get(change.step_uuid) != Verdict.REPLAN:
                self._judge(answer, [change], [result], advanced)
                return
        advanced.again.append(result)

    def _judge(
        self, answer: Answer, changes: Sequence[Change], results: Sequence[Result], advanced: AdvanceResult
    ) -> None:
        advanced.add(answer)
        verdicts: Mapping[str, str] = answer.get("verdicts") or {}
        for result in results if verdicts else ():
            verdict = verdicts.get(result.outcome.claim.step_uuid)
            if verdict == Verdict.BUSY:
                advanced.again.append(result)
            elif verdict is not None and verdict != Verdict.ALREADY_ACCEPTED:
                advanced.refused[result.outcome.claim.step_uuid] = Verdict(verdict)
        complete = list(_completing(changes, results, verdicts))
        advanced.complete += complete
        if _log.isEnabledFor(logging.INFO):
            _log_completed(complete)


def _log_completed(results: Iterable[Result]) -> None:
    for result in results:
        claim = result.outcome.claim
        fields = {
            "step": claim.name,
            "task": claim.task_uuid,
            "step_uuid": claim.step_uuid,
            "attempt": claim.attempt,
            "took_ms": result.outcome.duration_ms,
        }
        said = " ".join(f"{name}={value}" for name, value in fields.items())
        _log.info("step_completed %s", said, extra={"fields": fields})


def _completing(changes: Sequence[Change], results: Sequence[Result], verdicts: Mapping[str, str]) -> Iterable[Result]:
    """The results that this write accepted as those of complete steps. Of two claims of one step the newer counts."""
    newest: dict[str, tuple[Change, Result]] = {}
    for change, result in zip(changes, results, strict=True):
        known = newest.get(change.step_uuid)
        if known is None or known[1].outcome.claim.token < result.outcome.claim.token:
            newest[change.step_uuid] = (change, result)
    return [result for step, (change, result) in newest.items() if change.kind == "ok" and step not in verdicts]


def not_storable(result: Result, error: DataRefused) -> Result | None:
    """The failure in place of a result that cannot be stored. None when this is such a failure already: its step is
    left to its deadline, and to a person."""
    outcome = result.outcome
    if outcome.failure is not None and outcome.failure.error_type == Verdict.NOT_STORABLE:
        claim = outcome.claim
        _log.error("result_stuck step=%s task=%s reason=%s", claim.name, claim.task_uuid, error)
        return None
    failure = Failure(message=refusal(error), error_type=Verdict.NOT_STORABLE, retryable=False)
    return Result(Outcome(outcome.claim, outcome.duration_ms, failure=failure), result.plan)


def refusal(error: DataRefused) -> str:
    """What the database said, in text that can be stored."""
    return f"the result cannot be stored: {error.message}".encode("ascii", "backslashreplace").decode()
