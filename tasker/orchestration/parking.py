"""The result path `queued`: the worker stores and parks, an orchestrator evaluates.

Parking ends the worker's lease. The message carries (step, token) only and is sent after the commit: the row is the
truth, and a parked step whose message was lost is found by the sweep.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import Any
from uuid import UUID

from tasker.contracts.clock import Random
from tasker.contracts.execution import Verdict
from tasker.contracts.messaging import QueuedMessage
from tasker.db.connection import DataRefused
from tasker.db.queries import query
from tasker.errors import DatabaseError, MessagingError
from tasker.orchestration.changes import change_of
from tasker.orchestration.ending import Ended, Ending
from tasker.orchestration.halving import halved
from tasker.orchestration.log import tell_completed
from tasker.orchestration.receptions import Receptions, apart, came_too_often
from tasker.orchestration.results import Processor, not_storable
from tasker.resilience.outage import level_of
from tasker.services.engine.answers import ParkAnswer
from tasker.services.engine.calls import UNKNOWN_STEP, Engine
from tasker.services.engine.changes import soonest_retry
from tasker.services.engine.exchange import AdvanceResult, Caller, Result
from tasker.services.engine.plans import PlanStore
from tasker.services.task_lines import log_unknown

LATER_SECONDS = 2.0
"""When the message of a step that could not be ended comes again; sooner than a sweep calls it lost."""
_log = logging.getLogger("tasker.orchestration")


class Parking:
    """A sink of results that parks them. Nothing is handed back: what becomes ready goes through the queue."""

    def __init__(self, engine: Engine, random: Random) -> None:
        self._engine, self._random = engine, random

    async def process(self, results: Sequence[Result], caller: Caller, *, wait: bool = True) -> AdvanceResult:
        """Store and park the results, then tell the orchestrators. Raises `DatabaseUnavailable`."""
        parked: list[AdvanceResult] = []
        await self._park(results, caller, parked)
        return AdvanceResult.merged(parked)

    async def _park(self, results: Sequence[Result], caller: Caller, parked: list[AdvanceResult]) -> None:
        async def park(part: Sequence[Result]) -> None:
            changes = [change_of(result, self._random.random()) for result in part]
            answer = await self._engine.move("park", {"worker": caller.worker, "items": changes}, ParkAnswer)
            parked.append(replace(answer, retry_in_ms=soonest_retry(changes)))
            tell_completed(part, lambda result: bool(result.success) and result.claim.step_uuid not in answer.verdicts)
            await self._announce(answer.parked)

        await halved(results, park, lambda result, error: self._refuse(result, caller, parked, error))

    async def _refuse(self, result: Result, caller: Caller, parked: list[AdvanceResult], error: DataRefused) -> None:
        """What the database does not store is parked as a failure (rule 5)."""
        if (failure := not_storable(result, error)) is not None:
            await self._park([failure], caller, parked)
        parked.append(AdvanceResult(verdicts={result.claim.step_uuid: Verdict.NOT_STORABLE}))

    async def _announce(self, parked: Sequence[Mapping[str, Any]]) -> None:
        if not parked:
            return
        try:
            await self._engine.messaging.send_step_results(parked)
        except MessagingError as error:
            _log.log(level_of(error), "step_results_not_announced count=%s reason=%s", len(parked), error)


class ParkedResults:
    """Ends parked steps: the orchestrator's half of the path."""

    def __init__(self, engine: Engine, processor: Processor, plans: PlanStore) -> None:
        self._engine, self._processor, self._plans = engine, processor, plans
        self._receptions = Receptions(engine, engine.messaging.receive_step_results)
        self._put_off = False

    def longest_pause(self) -> float:
        """Seconds until messages that were put off, or those of a crashed process, are visible again."""
        return LATER_SECONDS if self._put_off else self._engine.rules.hidden_seconds

    async def receive(self, caller: Caller, limit: int) -> tuple[int, AdvanceResult]:
        """Take messages of the results queue and end their steps; how many messages there were.

        What points to no step is set aside (RT-49); what cannot be ended now comes again after `LATER_SECONDS`. A step
        over which each process ended fails. Raises `DatabaseError`, after which all messages come again.
        """
        messages, advanced = await self._receptions.take(limit), list[AdvanceResult]()
        parts, later = apart(messages), False
        try:
            while parts:
                later |= await self._end_of(parts[0], caller, advanced)
                parts.pop(0)
        except DatabaseError:
            await self._receptions.give_back([message for part in parts for message in part])
            raise
        self._put_off = later or (self._put_off and not messages)
        return len(messages), AdvanceResult.merged(advanced)

    async def _end_of(self, messages: Sequence[QueuedMessage], caller: Caller, advanced: list[AdvanceResult]) -> bool:
        """End the steps of these messages and settle them; True when some come again later."""
        pointed = [(message, await self._step_of(message)) for message in messages]
        worn = {step for message, step in pointed if step and came_too_often(message)}
        ended = await self.end([step for _, step in pointed if step], caller, worn=worn)
        advanced += ended.advanced
        for message, step in pointed:
            if step in ended.unknown:
                await self._keep(message, step)
        await self._still_parked(ended.later)
        later = [message for message, step in pointed if step in ended.later]
        await self._receptions.give_back(later, LATER_SECONDS)
        await self._engine.messaging.ack_messages([message for message in messages if message not in later])
        return bool(later)

    async def _keep(self, message: QueuedMessage, step: str) -> None:
        log_unknown(message.queue, step)
        await self._engine.set_aside(message.queue, message.message_id, message.payload, UNKNOWN_STEP)

    async def _still_parked(self, steps: set[str]) -> None:
        """Their messages are not lost: sweeps are patient with them once more."""
        if steps:
            await self._engine.connection.execute(query("tasks", "still_parked"), {"steps": sorted(steps)})

    async def _step_of(self, message: QueuedMessage) -> str | None:
        try:
            return str(UUID(json.loads(message.payload)["step"]))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            reason = f"the message points to no parked step: {error!r:.200}"
            _log.warning("step_result_refused id=%s reason=%s", message.message_id, reason)
            await self._engine.set_aside(message.queue, message.message_id, message.payload, reason)
            return None

    async def end(
        self,
        steps: Sequence[str],
        caller: Caller,
        repairs: str | None = None,
        *,
        wait: bool = True,
        worn: Set[str] = frozenset(),
    ) -> Ended:
        """Complete, retry or fail these steps as they were parked; steps that have moved on are left alone.

        `repairs` is the kind of repair that this counts as; with `wait` False, tasks that somebody else is changing are
        passed over. One whose values the database refuses fails alone, and so do those that are `worn`.
        """
        if not steps:
            return Ended()
        return await Ending(self._engine, self._processor, self._plans, caller, repairs, wait).end(steps, worn)
