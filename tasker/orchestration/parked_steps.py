"""Evaluation of parked steps: each ends as parked; one that cannot does not delay the others (rule 5)."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence, Set
from dataclasses import field

from tasker.dataclasses import dataclass
from tasker.db.connection import DataRefused
from tasker.engine.bisect import halved
from tasker.engine.calls import Engine
from tasker.engine.changes import StepChange
from tasker.engine.exchange import CLAIM_BYTES, AdvanceResult, CompletingWorker, OnAdvanced
from tasker.engine.expansion.outcomes import OutcomeError
from tasker.engine.plans import PlanStore
from tasker.engine.sweep_answers import ParkedAnswer, ParkedRow
from tasker.engine.task_graph import plan_growth
from tasker.errors import DatabaseError, LockTimeout, MessagingError, PlanUnreadable, StatementTimeout
from tasker.handlers.claims import Verdict
from tasker.logging.lines import log_line
from tasker.orchestration.changes import failed_change, simple_change, with_growth
from tasker.orchestration.log import ids_of_parked, log_processed_results
from tasker.orchestration.poison_guard import MOST_RECEPTIONS
from tasker.orchestration.results import MAX_REPLANS, UNUSABLE, ResultProcessor, refusal, unplannable
from tasker.template.plan import Plan

TIMEOUTS = (LockTimeout, StatementTimeout)
"""Errors of a locked row or a slow statement: a later try may succeed."""
WORN = (
    f"its result was taken {MOST_RECEPTIONS} times and the step never ended: each process that took it ended or stood"
    " still meanwhile; see the orchestrators' logs"
)
FAILED, LATER = "Step result processing failed permanently", "Step result processing failed, will retry"
_log = logging.getLogger("tasker.orchestration")


@dataclass(slots=True)
class EvaluatedSteps:
    """Outcomes of evaluated steps, by identifier; a step in no set had moved on before."""

    done: set[str] = field(default_factory=set)
    later: set[str] = field(default_factory=set)
    """Still parked: the task or step is locked, its graph keeps changing, or its plan cannot be read here."""
    apart: set[str] = field(default_factory=set)
    """Still parked: the write of these steps takes too long; the step that causes it is unknown."""
    unknown: set[str] = field(default_factory=set)
    """Steps that never existed in this database."""

    def take(self, changes: Sequence[StepChange], answer: AdvanceResult) -> None:
        steps = {change["s"] for change in changes}
        self.done |= steps - answer.verdicts.keys()
        self.later |= {step for step in steps if answer.comes_again(step)}


class ParkedStepEvaluator:
    """Evaluation of one batch of parked steps for `caller`; `on_advanced` gets each answer of the engine at once.

    `repairs` is the kind of repair to count. With `wait` False, locked tasks are skipped. Tasks in `kept`, whose lock
    was waited for in vain, are skipped too, and all locked tasks after the first such wait: the rest of the batch and
    later messages would wait as well.
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
        """Complete, retry or fail the steps; skip those that are no longer parked.

        Steps in `worn` fail: they were taken too often and must not be tried again.
        """
        while steps:
            answer = ParkedAnswer.parse(
                await self._engine.read("parked", {"steps": list(steps), "events": True, "max_bytes": CLAIM_BYTES})
            )
            self._ended.unknown |= answer.unknown
            await self._end_these(answer.rows, worn)
            steps = answer.rest
        return self._ended

    async def _end_these(self, rows: Sequence[ParkedRow], worn: Set[str]) -> None:
        plain: list[ParkedRow] = []
        expanding: list[ParkedRow] = []
        for row in rows:
            if row.step in worn:
                _log_row(logging.ERROR, FAILED, "parked_result_given_up", row)
                await self._fail(row, WORN, UNUSABLE)
            elif (plan := await self._plan_of(row)) is not None:
                (expanding if _expands(row, plan) else plain).append(row)
        locked = [row for row in plain if row.task in self._kept] if self._kept else []
        await halved(
            [row for row in plain if row.task not in self._kept] if locked else plain, self._move, self._refuse
        )
        await halved(locked, self._move, self._refuse)
        for row in expanding:
            await self._expand_alone(row)

    async def _expand_alone(self, row: ParkedRow) -> None:
        """Expand one step in a write of its own: one that cannot be planned, or is slow to write, delays no other."""
        try:
            await halved([row], self._expand, self._refuse)
        except TIMEOUTS as error:
            _log_row(logging.WARNING, LATER, "parked_result_takes_too_long", row, error)
            self._ended.apart.add(row.step)
        except (DatabaseError, MessagingError):
            raise
        except Exception as error:  # the same error would occur every time
            _log_row(logging.ERROR, FAILED, "parked_result_unusable", row, error, raised=True)
            await self._fail(row, unplannable(error), UNUSABLE)

    async def _plan_of(self, row: ParkedRow) -> Plan | None:
        """Return the plan, or None if only a newer release can read it: its processes can end the step (rule 24)."""
        try:
            return await self._plans.get(row.template)
        except PlanUnreadable:
            self._ended.later.add(row.step)
            return None

    async def _move(self, rows: Sequence[ParkedRow]) -> None:
        changes = [_parked_change(row, await self._plans.get(row.template)) for row in rows]
        try:
            answer = await self._bring(changes)
        except TIMEOUTS as error:  # one of the steps, unknown which: each is delivered again alone
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
            _log.warning(
                "parked_results_deferred tasks=%s reason=locked by another transaction: see pg_locks", len(busy)
            )
            self._wait = False
            self._kept |= busy

    async def _expand(self, rows: Sequence[ParkedRow]) -> None:
        """Write the expansion, planned again while the graph changes; after `MAX_REPLANS` tries it stays parked."""
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
        """Fail the step with the database's message. If that is refused, too, it stays parked for an operator."""
        _log_row(logging.WARNING, FAILED, "parked_result_refused", row, error)
        await self._fail(row, refusal(error), Verdict.NOT_STORABLE)

    async def _fail(self, row: ParkedRow, message: str, error_type: str) -> None:
        change = _failed(row, message, error_type)
        try:
            self._take([row], [change], await self._bring([change]))
        except DataRefused as again:
            _log_row(logging.ERROR, FAILED, "parked_result_stuck", row, again)

    def _take(self, rows: Sequence[ParkedRow], changes: Sequence[StepChange], answer: AdvanceResult) -> None:
        self._on_advanced(answer)
        self._ended.take(changes, answer)
        log_processed_results(rows, answer)


def _log_row(
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
        change["ev"] = None  # the database has the events that the worker built
    return change


def _failed(row: ParkedRow, message: str, error_type: str) -> StepChange:
    failure = {"message": message, "error_type": error_type, "retryable": False}
    return failed_change(row, failure, row.worker)
