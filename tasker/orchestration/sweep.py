"""Sweep: finds work that a lost message, process or timer left behind.

A sweep reads active tasks in slices, and one slice of all open tasks, and repairs through the same guarded changes as
other components, so any number of processes may sweep at the same time. Its cost does not grow with the number of
waiting tasks. In a healthy system it finds nothing.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import groupby
from typing import Any

from tasker.clock import Random
from tasker.dataclasses import dataclass
from tasker.db.connection import DataRefused
from tasker.db.sql_files import query
from tasker.engine.answers import EvaluateAnswer, RepairAnswer
from tasker.engine.bisect import halved
from tasker.engine.calls import Engine
from tasker.engine.changes import StepChange
from tasker.engine.exchange import AdvanceResult, CompletingWorker, OnAdvanced
from tasker.engine.plans import PlanStore
from tasker.engine.process_registry import ProcessRegistry
from tasker.engine.sweep_answers import FoundStep, Orphan, SweepFindings, UnservedStep
from tasker.engine.task_log import read_task_ids
from tasker.errors import LockTimeout, MessagingError, PlanUnreadable, StatementTimeout
from tasker.logging.lines import log_line
from tasker.orchestration.changes import failed_change, lost_change, simple_change
from tasker.orchestration.dead_letters import ReplaySweep, StalenessSearch
from tasker.orchestration.failure_storms import FailureBurstMonitor
from tasker.orchestration.log import LostWorkerLog, log_lost_workers
from tasker.orchestration.parked_results import ParkedResultConsumer
from tasker.orchestration.pruning import RetentionSweep
from tasker.orchestration.results import ResultProcessor
from tasker.resilience.outage import level_of
from tasker.settings.breakers import FailureStorm
from tasker.settings.database import Retention
from tasker.settings.execution import BatchProcessing, DeadLetterSettings, Sweep
from tasker.settings.listening import ReadinessTiming

BACKLOG_GRACES = 12
"""Factor of a parked result's grace for which it may wait behind other messages."""


async def steps_without_message(engine: Engine, steps: Sequence[str], grace_ms: int) -> Sequence[str]:
    """Return those of these parked steps that a sweep must end, because no message will.

    A sweep that ends a step with a waiting message would duplicate an orchestrator's work. While messages wait and an
    orchestrator lives, the message of a step that was parked within `BACKLOG_GRACES` times `grace_ms` milliseconds may
    be among them, and no query can find it there.
    """
    queue = engine.messaging.names.step_results
    try:
        waiting = (await engine.messaging.queue_stats(queue)).depth
    except MessagingError:
        return steps
    if not waiting:
        return steps
    args = {"steps": list(steps), "queue": queue, "ms": BACKLOG_GRACES * grace_ms}
    return [step for (step,) in await engine.connection.execute(query("tasks", "parked_for_long"), args)]


PASS_STEPS = 10_000
"""Steps of tasks under way that one slice of a sweep reads."""
WAITING_STEPS = 2000
"""Steps of open tasks that one slice of the pass over all open tasks reads."""
BACKLOG_SLICE = 1000
"""Backlogged steps that one repair checks."""
EVENT_SLICES = 20
"""Largest number of transactions per sweep that assign positions to events."""
EXPIRED = 1000
"""Expired events that one transaction deletes."""
_log = logging.getLogger("tasker.orchestration")


@dataclass(frozen=True, slots=True)
class SweepSettings:
    """Tables that a sweep reads."""

    ages: Sweep = Sweep.for_single_process()
    timing: ReadinessTiming = ReadinessTiming.for_single_process()
    """Period of the sweep, with jitter between processes."""
    bursts: FailureStorm = FailureStorm.for_single_process()
    dead_letters: DeadLetterSettings = DeadLetterSettings.for_single_process()
    batches: BatchProcessing = BatchProcessing.for_single_process()
    retention: Retention = Retention.for_single_process()
    repair_ms: int = 60_000
    """Interval at which any one process compares the marks and counters of a namespace with its rows."""
    whole: bool = False
    """Read everything that is open or in the backlog, from the beginning, not only the next slice."""


class Sweeper:
    """The sweep of one process. `on_advanced` gets each answer of the engine at once, even if a later step fails."""

    def __init__(
        self,
        engine: Engine,
        processor: ResultProcessor,
        plans: PlanStore,
        random: Random,
        settings: SweepSettings | None = None,
        on_advanced: OnAdvanced = lambda _: None,
    ) -> None:
        self._engine, self._processor, self._plans, self._random = engine, processor, plans, random
        self._on_advanced = on_advanced
        self._parked = ParkedResultConsumer(engine, processor, plans, on_advanced)
        self._settings = settings or SweepSettings()
        self._registry, self._silent = ProcessRegistry(engine.connection), LostWorkerLog()
        self.storms = FailureBurstMonitor(engine, self._settings.bursts)
        self.staleness = StalenessSearch(engine, self._settings.dead_letters, self._settings.batches, on_advanced)
        self.replays = ReplaySweep(engine, on_advanced)
        self.retention = RetentionSweep(engine, self._settings.retention)

    async def sweep(
        self, caller: CompletingWorker, between: Callable[[], Awaitable[None]] | None = None
    ) -> Counter[str]:
        """Sweep the active tasks and a slice of the others, then bursts, stale tasks, replays, retention and events.

        Returns the repairs by kind. `between` is called after each slice of tasks. Repairs are logged even if the rest
        fails.
        """
        repairs: Counter[str] = Counter()
        taken: list[Orphan] = []
        try:
            await self._pass(caller, between, repairs, taken)
        finally:
            log_lost_workers(taken)
            if +repairs:
                _log.warning("repairs_made %s", " ".join(f"{kind}={number}" for kind, number in (+repairs).items()))
        await self.storms.check()
        await self.staleness.search(caller.worker)
        await self.replays.run(caller, between)
        await self.retention.run()
        await self._place_events()
        await self._delete_expired_events()
        return repairs

    async def _delete_expired_events(self) -> None:
        """Delete events that were sent to waiting steps and have expired."""
        for _ in range(EVENT_SLICES):
            if (await self._engine.read("prune_incoming_events", {"limit": EXPIRED}))["deleted"] < EXPIRED:
                break
        await self._engine.read("prune_locks", {"limit": EXPIRED})
        await self._engine.read("prune_memos", {"limit": EXPIRED})

    async def _place_events(self) -> None:
        """Assign positions to new events, so that readers find them in order."""
        for _ in range(EVENT_SLICES):
            if (await self._engine.read("place_events", {}))["over"]:
                break

    async def _pass(
        self,
        caller: CompletingWorker,
        between: Callable[[], Awaitable[None]] | None,
        repairs: Counter[str],
        taken: list[Orphan],
    ) -> None:
        last: str | None = None
        self._silent.log_silent(await self._registry.forget(self._settings.ages.forget_workers_after_seconds * 1000))
        repairs["frozen_client"] += await self._counted("frozen_client", await self._end_frozen())
        while True:
            findings = SweepFindings.parse(await self._engine.read("sweep", {**self._args(last), "steps": PASS_STEPS}))
            await self._repair(findings, caller, repairs, taken)
            if between is not None:
                await between()
            last = findings.last
            if last is None:
                break
        await self._pass_waiting(caller, between, repairs, taken)
        await self._repair_rest(between, repairs)

    async def _pass_waiting(
        self,
        caller: CompletingWorker,
        between: Callable[[], Awaitable[None]] | None,
        repairs: Counter[str],
        taken: list[Orphan],
    ) -> None:
        """Read the next slice of all open tasks; with `whole`, all slices."""
        begin: dict[str, bool] = {"begin": True} if self._settings.whole else {}
        while True:
            findings = SweepFindings.parse(
                await self._engine.read("find_waiting", {**self._args(None), "steps": WAITING_STEPS, **begin})
            )
            await self._repair(findings, caller, repairs, taken)
            if between is not None:
                await between()
            if not (findings.more and self._settings.whole):
                break
            begin = {}

    async def _repair_rest(self, between: Callable[[], Awaitable[None]] | None, repairs: Counter[str]) -> None:
        """Repair what no slice of open tasks shows, and update marks that a pause has left to sweeps."""
        begin: dict[str, bool] = {"begin": True} if self._settings.whole else {}
        while True:
            answer = await self._repair_slice(begin)
            repairs.update(answer.repaired)
            if between is not None:
                await between()
            if not (answer.marks_left or (answer.slices_left and self._settings.whole)):
                break
            begin = {}

    async def _repair_slice(self, begin: Mapping[str, bool]) -> RepairAnswer:
        """Repair one slice; the database has counted the repairs in the answer."""
        try:
            answer = await self._engine.call_typed(
                "repair", {"every_ms": self._settings.repair_ms, "slice": BACKLOG_SLICE, **begin}, RepairAnswer
            )
        except (LockTimeout, StatementTimeout) as error:
            _log.warning("repair_skipped reason=%s", error)
            return RepairAnswer()
        self._on_advanced(answer)
        return answer

    async def _counted(self, kind: str, number: int) -> int:
        """Count repairs that were made outside changes of tasks, which count their own in their transaction."""
        if number:
            await self._engine.read("record_repairs", {kind: number})
        return number

    async def _end_frozen(self) -> int:
        """End sessions whose process is frozen in the middle of an answer: they keep their locks."""
        rows = await self._engine.connection.execute(query("database", "end_frozen"), {})
        return int(rows[0][0])

    def _args(self, last: str | None) -> dict[str, Any]:
        ages, names = self._settings.ages, self._engine.messaging.names
        return {
            "after": last,
            "limit": ages.slice,
            "hint_grace_ms": ages.hint_grace_ms,
            "park_grace_ms": ages.park_grace_ms,
            "idle_grace_ms": ages.idle_grace_ms,
            "unserved_ms": int(ages.unserved_timeout_seconds * 1000) or None,
            "results_queue": names.step_results,
            "finalizations_queue": names.task_finalizations,
        }

    async def _repair(
        self, findings: SweepFindings, caller: CompletingWorker, repairs: Counter[str], taken: list[Orphan]
    ) -> None:
        kinds = {
            "lost_worker": [change for orphan in findings.orphans if (change := await self._lost(orphan))],
            "not_enqueued": [_simple("unhold", row) for row in findings.forgotten],
            "not_promoted": [_simple("promote", row) for row in findings.unpromoted],
            "nobody_serves": [_unserved(row) for row in findings.unserved],
            "suspended_without_wait": [_waits_again(row) for row in findings.unwaiting],
        }
        for kind, changes in kinds.items():
            done = await self.apply(changes, caller, kind)
            repairs[kind] += len(done)
            if kind == "lost_worker":
                taken += [orphan for orphan in findings.orphans if orphan.step in done]
        if parked := [row.step for row in findings.parked]:
            repairs["result_message_lost"] += await self._end_parked(parked, caller)
        if untimed := [row.step for row in findings.untimed]:
            repairs["wait_timer_lost"] += (await self._engine.read("mend_waits", {"steps": untimed}))["mended"]
        repairs["hint_lost"] += await self._hint(findings.unhinted)
        repairs["not_finished"] += await self._settle(findings.unfinished)

    async def _end_parked(self, steps: Sequence[str], caller: CompletingWorker) -> int:
        lost = await steps_without_message(self._engine, steps, self._settings.ages.park_grace_ms)
        try:
            ended = await self._parked.end(lost, caller, "result_message_lost", wait=False)
        except (LockTimeout, StatementTimeout) as error:
            _log.warning("sweep_skipped steps=%s reason=%s", len(lost), error)
            return 0
        return len(ended.done)

    async def _settle(self, unfinished: Sequence[str]) -> int:
        settled = 0

        async def settle(tasks: Sequence[str]) -> None:
            nonlocal settled
            args = {"tasks": list(tasks), "repairs": "not_finished"}
            answer = await self._engine.call_typed("evaluate", args, EvaluateAnswer)
            settled += answer.settled
            self._on_advanced(answer)

        await halved(unfinished, settle, self._refused)
        return settled

    async def _lost(self, orphan: Orphan) -> StepChange | None:
        """Return the change, or None if only a newer release can read the template: it sweeps, too (rule 24)."""
        try:
            plan = await self._plans.get(orphan.template)
        except PlanUnreadable:
            return None
        return lost_change(orphan, plan.steps[orphan.ordinal], self._random.random())

    async def apply(
        self, changes: Sequence[StepChange], caller: CompletingWorker, repairs: str | None = None
    ) -> set[str]:
        """Write changes, skipping locked tasks; return the steps that were changed.

        The engine refuses outdated changes, and writes the rest without those that the database refuses (rule 5).
        """
        done: set[str] = set()

        async def write(part: Sequence[StepChange]) -> None:
            try:
                answer = await self._processor.apply(part, caller, wait=False, repairs=repairs, patient=False)
            except (LockTimeout, StatementTimeout) as error:
                _log.warning("sweep_skipped steps=%s reason=%s", len(part), error)
                return
            self._on_advanced(answer)
            done.update({change["s"] for change in part} - answer.verdicts.keys())

        await halved(changes, write, self._refused)
        return done

    async def _hint(self, rows: Sequence[FoundStep]) -> int:
        """Send messages again for enqueued steps that have none.

        Sleeping workers are woken even where messages exist: the notification may have been lost.
        """
        repaired = 0
        by_namespace = sorted(rows, key=_namespace)
        for namespace, group in groupby(by_namespace, key=_namespace):
            self._on_advanced(AdvanceResult(sent={namespace: 0}))
            try:
                hinted = await self._hint_again(namespace, {row.step: row.token for row in group})
                repaired += await self._counted("hint_lost", hinted)
            except MessagingError as error:  # the rest of the sweep continues, and its repairs are counted
                _log.log(level_of(error), "message_check_skipped namespace=%s reason=%s", namespace, error)
        return repaired

    async def _hint_again(self, namespace: str, tokens: Mapping[str, int]) -> int:
        steps = await self._engine.missing_hints(namespace, list(tokens))
        if not steps:
            return 0
        answer = await self._engine.call_typed("wakeups_sent", {"steps": steps, "tokens": tokens}, AdvanceResult)
        self._on_advanced(answer)
        return sum(answer.sent.values())

    async def _refused(self, item: StepChange | str, error: DataRefused) -> None:
        """Log a refused repair at every pass; the item stays as it is and delays no other."""
        task, step = (item, {}) if isinstance(item, str) else (item["t"], {"step_uuid": item["s"]})
        ids = (await read_task_ids(self._engine.connection, [task]))[task]
        log_line(_log, logging.ERROR, "sweep_refused", {**ids, **step, "error": str(error)})


def _namespace(row: FoundStep) -> str:
    return row.namespace


def _simple(kind: str, row: FoundStep) -> StepChange:
    return simple_change(kind, row.step, row.task, row.token)


def _waits_again(row: FoundStep) -> StepChange:
    """Return the change that lets a suspended step without a wait begin a new one."""
    change = _simple("retry", row)
    change["d"] = 0
    change["e"] = {
        "message": "the wait of the step was lost",
        "error_type": "suspended_without_wait",
        "retryable": True,
        "attempt": row.attempt,
    }
    return change


def _unserved(row: UnservedStep) -> StepChange:
    """Return the change that fails the step permanently: no worker has had its handler for too long (rule 16)."""
    error = {
        "message": f"no worker of namespace {row.namespace} has the handler {row.callable!r}",
        "error_type": "handler_not_found",
        "retryable": False,
        "handler": row.callable,
        "attempt": row.attempt,
    }
    return failed_change(row, error)
