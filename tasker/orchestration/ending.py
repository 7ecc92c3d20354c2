"""Ending parked steps: each goes where it was parked for; one that cannot holds up no other (rule 5)."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence, Set
from dataclasses import field

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.execution import Verdict
from tasker.contracts.plan import Plan
from tasker.db.connection import DataRefused
from tasker.errors import DatabaseError, LockTimeout, MessagingError, PlanUnreadable, StatementTimeout
from tasker.lifecycle.outcomes import OutcomeError
from tasker.log_lines import log_line
from tasker.orchestration.changes import failed_change, simple_change, with_growth
from tasker.orchestration.expansion import UNUSABLE, unplannable
from tasker.orchestration.log import ids_of_parked, log_processed_results
from tasker.orchestration.receptions import MOST_RECEPTIONS
from tasker.orchestration.results import MAX_REPLANS, ResultProcessor, refusal
from tasker.services.engine.calls import Engine
from tasker.services.engine.changes import StepChange
from tasker.services.engine.exchange import AdvanceResult, CompletingWorker, OnAdvanced
from tasker.services.engine.found import ParkedAnswer, ParkedRow
from tasker.services.engine.graph import plan_growth
from tasker.services.engine.halving import halved
from tasker.services.engine.plans import PlanStore

TIMEOUTS = (LockTimeout, StatementTimeout)
"""Somebody keeps a row, or it takes too long: another time it may go."""
WORN = (
    f"its result was taken {MOST_RECEPTIONS} times and the step never ended: each process that took it ended or stood"
    " still meanwhile; see the orchestrators' logs"
)
FAILED, LATER = "Step result processing failed permanently", "Step result processing failed, will retry"
_log = logging.getLogger("tasker.orchestration")


@dataclass(slots=True)
class EvaluatedSteps:
    """What became of parked steps, by their identifiers; one in no set had moved on before."""

    done: set[str] = field(default_factory=set)
    later: set[str] = field(default_factory=set)
    """Still parked: somebody keeps the task or the step, its graph keeps changing, its template cannot be read here."""
    apart: set[str] = field(default_factory=set)
    """Still parked: ending them takes too long, or one of those that were with them; nobody knows which."""
    unknown: set[str] = field(default_factory=set)
    """This database has never had them."""

    def take(self, changes: Sequence[StepChange], answer: AdvanceResult) -> None:
        """Take in the engine's answer to these changes."""
        steps = {change["s"] for change in changes}
        self.done |= steps - answer.verdicts.keys()
        self.later |= {step for step in steps if answer.comes_again(step)}


class ParkedStepEvaluator:
    """Ends one batch of parked steps for `caller`; `on_advanced` sees each answer of the engine as soon as it is there.

    `repairs` is the kind of repair that it counts as; with `wait` False, tasks that somebody changes are passed over.
    So are those in `kept`, which holds the tasks that were waited for in vain, and all after the first such wait: the
    others of the batch, and what is behind it, wait as well.
    """

    def __init__(
        self,
        engine: Engine,
        processor: ResultProcessor,
        plans: PlanStore,
        on_advanced: OnAdvanced,
        caller: CompletingWorker,
        repairs: str | None,
        wait: bool,
        kept: set[str],
    ) -> None:
        self._engine, self._processor, self._plans, self._on_advanced = engine, processor, plans, on_advanced
        self._caller, self._repairs, self._wait, self._kept = caller, repairs, wait, kept
        self._ended = EvaluatedSteps()

    async def end(self, steps: Sequence[str], worn: Set[str] = frozenset()) -> EvaluatedSteps:
        """Complete, retry or fail them; those that are not parked any more are left alone. Those that are `worn` fail:
        nobody is to try it again."""
        while steps:
            found = ParkedAnswer.parse(await self._engine.read("parked", {"steps": list(steps), "events": True}))
            self._ended.unknown |= found.unknown
            await self._end_these(found.rows, worn)
            steps = found.rest
        return self._ended

    async def _end_these(self, rows: Sequence[ParkedRow], worn: Set[str]) -> None:
        plain: list[ParkedRow] = []
        expanding: list[ParkedRow] = []
        for row in rows:
            if row.step in worn:
                _tell(logging.ERROR, FAILED, "parked_result_given_up", row)
                await self._fail(row, WORN, UNUSABLE)
            elif (plan := await self._plan_of(row)) is not None:
                (expanding if _expands(row, plan) else plain).append(row)
        kept = [row for row in plain if row.task in self._kept] if self._kept else []
        await halved([row for row in plain if row.task not in self._kept] if kept else plain, self._move, self._refuse)
        await halved(kept, self._move, self._refuse)
        for row in expanding:
            await self._expand_alone(row)

    async def _expand_alone(self, row: ParkedRow) -> None:
        """One that cannot be planned, or takes too long to write, holds up no other."""
        try:
            await halved([row], self._expand, self._refuse)
        except TIMEOUTS as error:
            _tell(logging.WARNING, LATER, "parked_result_takes_too_long", row, error)
            self._ended.apart.add(row.step)
        except (DatabaseError, MessagingError):
            raise
        except Exception as error:  # whatever it is, it would be the same every time
            _tell(logging.ERROR, FAILED, "parked_result_unusable", row, error, raised=True)
            await self._fail(row, unplannable(error), UNUSABLE)

    async def _plan_of(self, row: ParkedRow) -> Plan | None:
        """None where a newer release has stored what this one cannot read: others may (rule 24)."""
        try:
            return await self._plans.get(row.template)
        except PlanUnreadable:
            self._ended.later.add(row.step)
            return None

    async def _move(self, rows: Sequence[ParkedRow]) -> None:
        changes = [_parked_change(row, await self._plans.get(row.template)) for row in rows]
        try:
            answer = await self._bring(changes)
        except TIMEOUTS as error:  # one of them, and nobody knows which: they come again alone
            _log.warning("parked_results_deferred steps=%s reason=%s", len(rows), error)
            self._ended.apart |= {row.step for row in rows}
        else:
            self._take(rows, changes, answer)

    async def _bring(self, changes: Sequence[StepChange]) -> AdvanceResult:
        wait = self._wait and not (self._kept and any(change["t"] in self._kept for change in changes))
        answer = await self._processor.apply(
            changes, self._caller, wait=wait, brought=True, repairs=self._repairs, patient=False
        )
        if self._kept or answer.verdicts:
            self._remember(changes, answer, wait)
        return answer

    def _remember(self, changes: Sequence[StepChange], answer: AdvanceResult, waited: bool) -> None:
        busy = {change["t"] for change in changes if answer.verdicts.get(change["s"]) is Verdict.BUSY}
        self._kept -= {change["t"] for change in changes} - busy
        if waited and busy:
            _log.warning("parked_results_deferred tasks=%s reason=somebody keeps them locked: see pg_locks", len(busy))
            self._wait = False
            self._kept |= busy

    async def _expand(self, rows: Sequence[ParkedRow]) -> None:
        """Planned again while the graph changes; in the end the step stays parked, and its turn comes again."""
        (row,) = rows
        for _ in range(MAX_REPLANS):
            change = await self._expansion(row)
            answer = await self._bring([change])
            if Verdict.REPLAN not in answer.verdicts.values():
                break
        self._take(rows, [change], answer)

    async def _expansion(self, row: ParkedRow) -> StepChange:
        plan = await self._plans.get(row.template)
        result = row.result if isinstance(row.result, Mapping) else {}
        try:
            growth = await plan_growth(self._engine, plan, row.task, row.name, result)
        except OutcomeError as error:
            return _failed(row, str(error), "invalid_outcome")
        return with_growth(_parked_change(row, plan), growth)

    async def _refuse(self, row: ParkedRow, error: DataRefused) -> None:
        """The step fails with what the database said. Where that is refused, too, it stays parked for a person."""
        _tell(logging.WARNING, FAILED, "parked_result_refused", row, error)
        await self._fail(row, refusal(error), Verdict.NOT_STORABLE)

    async def _fail(self, row: ParkedRow, message: str, error_type: str) -> None:
        change = _failed(row, message, error_type)
        try:
            self._take([row], [change], await self._bring([change]))
        except DataRefused as again:
            _tell(logging.ERROR, FAILED, "parked_result_stuck", row, again)

    def _take(self, rows: Sequence[ParkedRow], changes: Sequence[StepChange], answer: AdvanceResult) -> None:
        self._on_advanced(answer)
        self._ended.take(changes, answer)
        log_processed_results(rows, answer)


def _tell(
    level: int, phrase: str, operation: str, row: ParkedRow, error: object = None, *, raised: bool = False
) -> None:
    fields = ids_of_parked(row) | {"operation": operation} | ({} if error is None else {"error": str(error)})
    log_line(_log, level, phrase, fields, raised=raised)


def _expands(row: ParkedRow, plan: Plan) -> bool:
    return row.kind == "ok" and plan.steps[row.ordinal].type.expands


def _parked_change(row: ParkedRow, plan: Plan) -> StepChange:
    change = simple_change(row.kind, row.step, row.task, row.token, row.worker)
    if row.kind == "retry":
        change["d"] = row.delay_ms
    if row.publishes or plan.steps[row.ordinal].publishes_events:
        change["ev"] = None  # the database has what the worker made of them
    return change


def _failed(row: ParkedRow, message: str, error_type: str) -> StepChange:
    failure = {"message": message, "error_type": error_type, "retryable": False}
    return failed_change(row, failure, row.worker)
