"""The result path `queued`: the worker stores and parks results, an orchestrator evaluates them.

Parking ends the worker's lease on the step. Messages carry identifiers only, one message for several results that were
parked together, and are sent after the commit. The row is authoritative: the sweep finds a parked step whose message
was lost.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any, Self

from tasker.clock import Random
from tasker.dataclasses import dataclass
from tasker.db.connection import DataRefused
from tasker.db.sql_files import query
from tasker.engine.answers import ParkAnswer
from tasker.engine.bisect import halved
from tasker.engine.calls import UNKNOWN_STEP, Engine
from tasker.engine.changes import soonest_retry
from tasker.engine.exchange import AdvanceResult, CompletingWorker, OnAdvanced, Result
from tasker.engine.plans import PlanStore
from tasker.engine.task_log import log_unknown
from tasker.errors import MessagingError
from tasker.handlers.claims import Verdict
from tasker.messaging.messages import pointed_at, pointers_to
from tasker.messaging.port import QueuedMessage
from tasker.orchestration.changes import change_of
from tasker.orchestration.log import log_completed_steps
from tasker.orchestration.parked_steps import EvaluatedSteps, ParkedStepEvaluator
from tasker.orchestration.poison_guard import PoisonGuard, exceeds_redeliveries, is_redelivered, split_suspects
from tasker.orchestration.results import ResultProcessor, not_storable
from tasker.resilience.outage import level_of

LATER_SECONDS = 2.0
"""Delay after which the message of a step that could not be ended is delivered again; shorter than a sweep's grace."""
MOST_MESSAGES = 100
"""Largest number of messages taken together, each of which may name several steps."""
MOST_KEPT = 10_000
"""Largest number of remembered tasks whose lock was waited for in vain, so that later results do not wait again."""
_log = logging.getLogger("tasker.orchestration")


@dataclass(frozen=True, slots=True)
class PointerMessage:
    """A message of the results queue and the steps that it names: none if there is a `problem`."""

    message: QueuedMessage
    steps: Sequence[str] = ()
    problem: str = ""

    @classmethod
    def of(cls, message: QueuedMessage) -> Self:
        try:
            return cls(message, pointed_at(message.payload))
        except ValueError as error:
            return cls(message, problem=str(error))

    @property
    def is_redelivered_batch(self) -> bool:
        """Return True for a redelivered message of several steps, any of which may have crashed a process."""
        return len(self.steps) > 1 and is_redelivered(self.message)


def parts_of(messages: Sequence[QueuedMessage], limit: int) -> list[list[PointerMessage]]:
    """Split messages into writes: up to `limit` steps each, and redelivered messages alone."""
    parts = list[list[PointerMessage]]()
    for together in split_suspects(messages):
        parts.append([])
        for pointed in map(PointerMessage.of, together):
            if parts[-1] and sum(len(pointer.steps) for pointer in parts[-1]) + len(pointed.steps) > limit:
                parts.append([])
            parts[-1].append(pointed)
    return parts


class ParkingProcessor:
    """Result sink that parks results. Makes no hand-offs: steps that become ready go through the queue."""

    def __init__(self, engine: Engine, random: Random) -> None:
        self._engine, self._random = engine, random

    async def process(self, results: Sequence[Result], caller: CompletingWorker, *, wait: bool = True) -> AdvanceResult:
        """Store and park the results, then notify the orchestrators. Raises `DatabaseUnavailable`."""
        parked = [result.stored for result in results if result.stored is not None]
        await self._park([result for result in results if result.stored is None], caller, parked)
        return AdvanceResult.merged(parked)

    async def _park(self, results: Sequence[Result], caller: CompletingWorker, parked: list[AdvanceResult]) -> None:
        async def park(part: Sequence[Result]) -> None:
            changes = [change_of(result, self._random.random()) for result in part]
            answer = await self._engine.call_typed("park", {"worker": caller.worker, "items": changes}, ParkAnswer)
            parked.append(replace(answer, retry_in_ms=soonest_retry(changes)))
            log_completed_steps(
                part, lambda result: bool(result.success) and result.claim.step_uuid not in answer.verdicts
            )
            await self._announce(answer.parked)

        await halved(results, park, lambda result, error: self._refuse(result, caller, parked, error))

    async def _refuse(
        self, result: Result, caller: CompletingWorker, parked: list[AdvanceResult], error: DataRefused
    ) -> None:
        """Park a failure in place of a result that the database refuses (rule 5)."""
        if (failure := not_storable(result, error)) is not None:
            await self._park([failure], caller, parked)
        parked.append(AdvanceResult(verdicts={result.claim.step_uuid: Verdict.NOT_STORABLE}))

    async def _announce(self, parked: Sequence[Mapping[str, Any]]) -> None:
        if not parked:
            return
        try:
            await self._engine.messaging.send_step_results(parked)
        except MessagingError as error:
            _log.log(level_of(error), "parked_results_not_sent count=%s reason=%s", len(parked), error)


class ParkedResultConsumer:
    """Consumer that ends parked steps: the orchestrator's half of the path.

    `on_advanced` gets each answer of the engine at once, even if a later step fails.
    """

    def __init__(
        self, engine: Engine, processor: ResultProcessor, plans: PlanStore, on_advanced: OnAdvanced = lambda _: None
    ) -> None:
        self._engine, self._processor, self._plans, self._on_advanced = engine, processor, plans, on_advanced
        self._receptions = PoisonGuard(engine, engine.messaging.receive_step_results, rows_tell=True)
        self._put_off = False
        self._each = 1
        self._kept: set[str] = set()

    def longest_pause(self) -> float:
        """Return the seconds until deferred messages, or those of a crashed process, are visible again."""
        return LATER_SECONDS if self._put_off else self._engine.rules.hidden_seconds

    async def receive(self, caller: CompletingWorker, limit: int) -> int:
        """Take messages of the results queue, end their steps, and return how many steps they named.

        Receives about that many, because no other process can end the received ones. A message without a step is
        quarantined; a step that cannot be ended now comes again after `LATER_SECONDS`. A step that has crashed several
        processes fails. Raises `DatabaseError`, after which all messages come again.
        """
        messages = await self._receptions.take(max(1, min(limit // self._each, MOST_MESSAGES)))
        parts, later = parts_of(messages, limit), False
        step_count = sum(max(1, len(pointed.steps)) for part in parts for pointed in part)
        if messages:
            self._each = -(-step_count // len(messages))
        async with self._receptions.returned(lambda: [pointed.message for part in parts for pointed in part]):
            while parts:
                later |= await self._end_of(parts[0], caller)
                parts.pop(0)
        self._put_off = later or (self._put_off and not messages)
        return step_count

    async def _end_of(self, part: Sequence[PointerMessage], caller: CompletingWorker) -> bool:
        """End the steps of these messages and settle the messages; return True when some are delivered again later."""
        if part[0].is_redelivered_batch:
            return await self._split(part[0])
        worn = {step for pointed in part for step in pointed.steps if exceeds_redeliveries(pointed.message)}
        # redelivered messages come alone: each wait for a lock would delay all others as long as the task is locked
        wait = not is_redelivered(part[0].message) or bool(worn)
        ended = await self.end([step for pointed in part for step in pointed.steps], caller, wait=wait, worn=worn)
        for pointed in part:
            await self._quarantine(pointed, ended.unknown)
        await self._settle(part, ended)
        return bool(ended.later or ended.apart)

    async def _settle(self, part: Sequence[PointerMessage], ended: EvaluatedSteps) -> None:
        """Acknowledge ended steps, and send or return the messages of the others.

        Steps that wait for a lock are sent as new messages and processed together with others: they crashed no process.
        Steps that take too long are delivered again, and then processed alone; so are all if the backend cannot delay
        messages.
        """
        messaging, parked = self._engine.messaging, ended.later | ended.apart
        await self._ack(pointer for pointer in part if parked.isdisjoint(pointer.steps))
        await self._still_parked(parked)
        back = ended.apart if messaging.capabilities.native_delay else parked
        given_back = [pointer.message for pointer in part if not back.isdisjoint(pointer.steps)]
        await self._receptions.give_back(given_back, LATER_SECONDS)
        sent = [pointer for pointer in part if back.isdisjoint(pointer.steps) and not parked.isdisjoint(pointer.steps)]
        steps = parked.intersection(step for pointer in sent for step in pointer.steps)
        for payload in pointers_to([{"step": step} for step in sorted(steps)]):
            await messaging.send_message_with_delay(messaging.names.step_results, payload, LATER_SECONDS)
        await self._ack(sent)

    async def _ack(self, part: Iterable[PointerMessage]) -> None:
        await self._engine.messaging.ack_messages([pointer.message for pointer in part])

    async def _split(self, pointed: PointerMessage) -> bool:
        """Send a message for each step, since one of them may have crashed a process: it must not affect the others.

        A crash in between leaves both; messages of steps that have moved on have no effect.
        """
        await self._engine.messaging.send_step_results([{"step": step} for step in pointed.steps], together=1)
        await self._ack([pointed])
        return False

    async def _quarantine(self, pointed: PointerMessage, unknown: Set[str]) -> None:
        """Quarantine a message that names no step, and each named step that never existed in this database."""
        message = pointed.message
        if pointed.problem:
            _log.warning("step_result_refused id=%s reason=%s", message.message_id, pointed.problem)
            await self._engine.quarantine_message(message.queue, message.message_id, message.payload, pointed.problem)
        for step in unknown & set(pointed.steps):
            log_unknown(message.queue, step)
            (payload,) = pointers_to([{"step": step}])
            await self._engine.quarantine_message(message.queue, message.message_id, payload, UNKNOWN_STEP)

    async def _still_parked(self, steps: set[str]) -> None:
        """Extend the grace of these steps: their messages are not lost."""
        if steps:
            await self._engine.connection.execute(query("tasks", "still_parked"), {"steps": sorted(steps)})

    async def end(
        self,
        steps: Sequence[str],
        caller: CompletingWorker,
        repairs: str | None = None,
        *,
        wait: bool = True,
        worn: Set[str] = frozenset(),
    ) -> EvaluatedSteps:
        """Complete, retry or fail these steps as they were parked; steps that have moved on are left alone.

        `repairs` is the kind of repair to count. With `wait` False, locked tasks are skipped. A step whose values the
        database refuses fails alone, and so do the steps in `worn`.
        """
        if not steps:
            return EvaluatedSteps()
        if len(self._kept) > MOST_KEPT:
            self._kept.clear()
        ending = ParkedStepEvaluator(
            self._engine, self._processor, self._plans, self._on_advanced, caller, repairs, wait, self._kept
        )
        return await ending.end(steps, worn)
