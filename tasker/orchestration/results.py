"""Conversion of results to changes of steps; a refused batch is bisected, a decision expands the graph.

Called by the worker's process itself (result path `inline`) or by an orchestrator with parked results (`queued`).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tasker.clock import Random
from tasker.db.connection import DataRefused
from tasker.engine.bisect import halved
from tasker.engine.calls import Engine
from tasker.engine.changes import StepChange
from tasker.engine.exchange import AdvanceResult, CompletingWorker, Result
from tasker.engine.expansion.outcomes import OutcomeError
from tasker.engine.failure_writes import needs_plan, with_plan
from tasker.engine.plans import PlanStore
from tasker.engine.task_graph import Growths, VersionedGraph, growth_of, known_graph, plan_growth, surely_known_graph
from tasker.errors import DatabaseError, LockTimeout, PlanUnreadable, TaskNotFound
from tasker.handlers.claims import Failure, Verdict
from tasker.json_values import as_stored
from tasker.logging.lines import ids_of, log_line
from tasker.orchestration.changes import change_of, with_growth
from tasker.orchestration.log import log_completed_steps, log_finished_tasks

UNUSABLE = "result_unusable"
_decision_log = logging.getLogger("tasker.decisions")


def expands(result: Result) -> bool:
    """Return True when storing this result creates steps (or must decide that it creates none)."""
    return result.plan.steps[result.claim.ordinal].type.expands and result.success is not None


async def plan_expansion(engine: Engine, result: Result, *, read: bool = False) -> StepChange:
    """Return the change for a decision's or batchable step's result, with the steps it creates.

    The task's graph is read if the plan does not determine it, or with `read`, after the planned graph has proved
    wrong. A malformed outcome fails the step permanently with an explanation; nothing is created. Other exceptions fail
    the step, too: they would recur each time and delay the results of others.
    """
    claim = result.claim
    value = result.success and as_stored(result.success.encoded)
    decided = value if isinstance(value, Mapping) else {}
    try:
        known = None if read else surely_known_graph(result.plan, claim.name, result.growths)
        growth = await plan_growth(engine, result.plan, claim.task_uuid, claim.name, decided, known)
    except OutcomeError as error:
        return change_of(replace(result, outcome=_refused(error)), 0.0)
    except TaskNotFound:  # the database has lost the task, and refuses the result
        return change_of(result, 0.0)
    except DatabaseError:
        raise
    except Exception as error:
        failure = Failure(message=unplannable(error), error_type=UNUSABLE, retryable=False)
        log_line(
            _decision_log, logging.ERROR, "expansion_unusable", ids_of(claim) | {"error": failure.message}, raised=True
        )
        return change_of(replace(result, outcome=failure), 0.0)
    return _expanding(engine, result, growth)


def _expanding(engine: Engine, result: Result, growth: VersionedGraph) -> StepChange:
    if engine.rules.limits.decisions.enable_detailed_logging:
        created = ",".join(row["name"] for row in growth.steps) or "nothing"
        log_line(_decision_log, logging.INFO, "expansion", ids_of(result.claim) | {"creates": created})
    return with_growth(change_of(_with_warnings(result, growth.warnings), 0.0), growth)


def changes_ahead(engine: Engine, results: Sequence[Result]) -> list[StepChange]:
    """Return the changes of dependents that ran with these results (`Result.ahead`).

    Each expansion of a task is planned for the graph behind the one before it, in the order in which the engine makes
    them. What cannot be planned is left out: the step becomes ready as usual, and its own attempt says why.
    """
    tasks: dict[str, list[tuple[Result, Growths]]] = {}
    for result in results:
        if result.ahead and result.growths is not None:
            tasks.setdefault(result.claim.task_uuid, []).extend((ahead, result.growths) for ahead in result.ahead)
    return [change for ahead in tasks.values() for change in _of_task(engine, ahead)]


def _of_task(engine: Engine, results: Sequence[tuple[Result, Growths]]) -> Iterator[StepChange]:
    graph = None
    for result, growths in sorted(results, key=lambda pair: pair[0].claim.step_uuid):
        plan, name = result.plan, result.claim.name
        if not expands(result):
            yield _ahead(change_of(result, 0.0))
            continue
        graph = graph or known_graph(plan, name, growths)
        if graph is None or result.success is None:
            continue
        try:
            growth = growth_of(engine, plan, name, as_stored(result.success.encoded), graph)
        except Exception:  # also a defect: the attempt of the step itself reports it
            continue
        graph = graph.expanded(name, growth, plan)
        yield _ahead(_expanding(engine, result, growth))


def _ahead(change: StepChange) -> StepChange:
    """Return the change of a step that was never claimed: it has no token to compare."""
    return {**{key: value for key, value in change.items() if key not in ("k", "w")}, "kind": "ahead"}  # type: ignore[typeddict-item]


def unplannable(error: Exception) -> str:
    """Return the failure message of a step whose outcome raised an unexpected error in the planner."""
    return f"what the step decided cannot be planned: {error!r}"


def _refused(error: OutcomeError) -> Failure:
    hint = {"hint": error.hint} if error.hint else {}
    return Failure(message=str(error), error_type="invalid_outcome", retryable=False, metadata=hint)


def _with_warnings(result: Result, warnings: tuple[str, ...]) -> Result:
    if not warnings or result.success is None:
        return result
    noted = {**result.success.metadata, "expansion_warnings": list(warnings)}
    return replace(result, outcome=replace(result.success, metadata=noted))


_log = logging.getLogger("tasker.orchestration")

MAX_REPLANS = 20
"""Number of times an expansion is planned again because the graph changed, before it waits for the next flush."""

LOCK_MS, PASSING_MS = 1000, 250
"""Lock timeouts in milliseconds of writes that are not `patient`: if they wait, and if they skip locked rows."""


class ResultProcessor:
    """Writer of results that advances tasks. Idempotent by token: a batch whose answer was lost may be repeated."""

    def __init__(self, engine: Engine, random: Random) -> None:
        self._engine = engine
        self._random = random
        self._plans = PlanStore(engine.connection)

    async def process(self, results: Sequence[Result], caller: CompletingWorker, *, wait: bool = True) -> AdvanceResult:
        """Store the results; hand up to `caller.slots` ready steps back.

        With `wait` False, results of locked tasks must be written again. Raises `DatabaseUnavailable`; the whole batch
        may then be written again.
        """
        batch = BatchWrite(self, self._engine, self._random, caller, wait, written=[])
        plain: list[Result] = []
        expanding: list[Result] = []
        for result in results:
            if result.stored is not None:
                batch.take(result.stored, [result])
            else:
                (expanding if expands(result) else plain).append(result)
        await halved(plain, batch.write, batch.refuse)
        for result in expanding:
            await batch.expand(result)
        return AdvanceResult.merged(batch.written)

    async def apply(
        self,
        changes: Sequence[StepChange],
        caller: CompletingWorker,
        *,
        slots: int = 0,
        wait: bool = True,
        brought: bool = False,
        repairs: str | None = None,
        patient: bool = True,
    ) -> AdvanceResult:
        """Write changes as they are and return the engine's answer. `repairs` is the kind of repair to count.

        If not `patient`, the write waits at most a second for a lock and skips locked steps as it does locked tasks:
        the changes of a batch have nothing to do with each other.

        With `brought`, the caller logs the ends of tasks, and a lock timeout does not fail the batch: results of the
        locked task are `busy`. Otherwise the timeout raises `LockTimeout`.
        """
        args: dict[str, Any] = {**caller.args(slots), "wait": wait, "items": changes}
        if repairs:
            args["repairs"] = repairs
        if any("ev" in change for change in changes):
            args["events"] = True
        if any("sn" in change for change in changes):
            args["snoozes"] = True
        if not patient:
            args["lock_ms"] = LOCK_MS if wait else PASSING_MS
        answer = await self._advance(args, brought)
        unplanned = [change for change in changes if needs_plan(change, answer.verdicts.get(change["s"]))]
        if not unplanned:
            return answer
        planned = {change["s"] for change in unplanned}
        verdicts = {step: verdict for step, verdict in answer.verdicts.items() if step not in planned}
        answers = [replace(answer, verdicts=verdicts)]
        for change in unplanned:
            free = slots - sum(len(each.claims) for each in answers)
            answers.append(await self._fail_with_plan(change, {**args, "slots": max(0, free)}, brought))
        return AdvanceResult.merged(answers)

    async def _fail_with_plan(self, change: StepChange, args: dict[str, Any], brought: bool) -> AdvanceResult:
        """Write a failure after which its task goes on, planned again while the graph changes (rule 8)."""
        for _ in range(MAX_REPLANS):
            try:
                changes = await with_plan(self._engine, self._plans, change)
            except PlanUnreadable:  # processes of a newer release can plan it
                return AdvanceResult(verdicts={change["s"]: Verdict.REPLAN})
            answer = await self._advance({**args, "items": changes, "atomic": True}, brought)
            if answer.verdicts.get(change["s"]) is not Verdict.REPLAN:
                break
        verdict = answer.verdicts.get(change["s"])
        return replace(answer, verdicts={} if verdict is None else {change["s"]: verdict})

    async def _advance(self, args: dict[str, Any], brought: bool) -> AdvanceResult:
        changes = args["items"]
        try:
            answer = await self._engine.call("advance", args, ends_logged=brought)
        except LockTimeout:
            if not (args["wait"] and brought):
                raise
            passing = {**args, "wait": False} | ({"lock_ms": PASSING_MS} if "lock_ms" in args else {})
            answer = await self._engine.call("advance", passing, ends_logged=brought)
        return AdvanceResult.parse(answer, changes)


class BatchWrite:
    """A write of results; the answer of each transaction is added to `written`.

    With `wait` False, results of locked tasks are left for another time.
    """

    def __init__(
        self,
        processor: ResultProcessor,
        engine: Engine,
        random: Random,
        caller: CompletingWorker,
        wait: bool,
        written: list[AdvanceResult],
    ) -> None:
        self._processor, self._engine, self._random = processor, engine, random
        self._caller, self._wait, self.written = caller, wait, written

    async def write(self, results: Sequence[Result]) -> None:
        """Store results that create no steps, and those of evaluated dependents, in one write. Raises `DataRefused`."""
        changes = [change_of(result, self._random.random()) for result in results]
        slots, ahead = self._free_slots(), changes_ahead(self._engine, results)
        changes += ahead
        answer = await self._processor.apply(changes, self._caller, slots=slots, wait=self._wait, brought=True)
        for change in ahead:  # a refused one says nothing of its step, which may be among the claims
            answer.verdicts.pop(change["s"], None)
        self.take(answer, results)

    async def expand(self, result: Result) -> None:
        """Store a result that creates steps, alone, planned again when the graph has changed (rule 8)."""
        try:
            for turn in range(MAX_REPLANS):
                change, slots = await plan_expansion(self._engine, result, read=turn > 0), self._free_slots()
                answer = await self._processor.apply([change], self._caller, slots=slots, wait=self._wait, brought=True)
                if answer.verdicts.get(change["s"]) is not Verdict.REPLAN:
                    break
        except DataRefused as error:
            await self.refuse(result, error)
        else:
            self.take(answer, [result])

    def _free_slots(self) -> int:
        return self._caller.slots - sum(len(answer.claims) for answer in self.written)

    async def refuse(self, result: Result, error: DataRefused) -> None:
        """Fail the step of a result that the database refuses (rule 5); first try without its dependents."""
        if result.ahead:
            return await halved([replace(result, ahead=())], self.write, self.refuse)
        self.written.append(AdvanceResult(verdicts={result.claim.step_uuid: Verdict.NOT_STORABLE}))
        if (failure := not_storable(result, error)) is not None:
            patient = BatchWrite(self._processor, self._engine, self._random, self._caller, True, self.written)
            await halved([failure], patient.write, patient.refuse)

    def take(self, answer: AdvanceResult, results: Sequence[Result]) -> None:
        """Record the answer to the write of these results."""
        self.written.append(answer)
        stored = [*results, *(ahead for result in results for ahead in result.ahead)]
        log_completed_steps(stored, lambda result: answer.has_completed(result.claim))
        log_finished_tasks((result.claim for result in results), answer)


def not_storable(result: Result, error: DataRefused) -> Result | None:
    """Return the failure in place of a result that cannot be stored, or None if the result is such a failure already.

    A step without a storable failure is left to its deadline, and to an operator.
    """
    if result.failure is not None and result.failure.error_type == Verdict.NOT_STORABLE:
        fields = ids_of(result.claim) | {"operation": "result_stuck", "error": str(error)}
        log_line(_log, logging.ERROR, "Step result processing failed permanently", fields)
        return None
    failure = Failure(message=refusal(error), error_type=Verdict.NOT_STORABLE, retryable=False)
    return replace(result, outcome=failure)


def refusal(error: DataRefused) -> str:
    """Return the database's message as text that can be stored."""
    return f"the result cannot be stored: {error.message}".encode("ascii", "backslashreplace").decode()
