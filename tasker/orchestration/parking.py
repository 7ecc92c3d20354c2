"""The result path `queued`: the worker stores and parks, an orchestrator evaluates.

Parking ends the worker's lease. The message carries (step, token) only and is sent after the commit: the row is the
truth, and a parked step whose message was lost is found by the sweep.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from tasker.contracts.clock import Random
from tasker.contracts.execution import Verdict
from tasker.contracts.messaging import QueuedMessage
from tasker.contracts.plan import EXPANDING, Plan
from tasker.errors import DatabaseError, MessagingError
from tasker.lifecycle.outcomes import OutcomeError
from tasker.orchestration.changes import Change, change_of, items_text, simple_change, with_growth
from tasker.orchestration.results import MAX_REPLANS, Processor
from tasker.services.engine import Engine
from tasker.services.exchange import Advanced, Caller, Result
from tasker.services.graph import plan_growth
from tasker.services.plans import PlanStore

_log = logging.getLogger("tasker.orchestration")


class Parking:
    """A sink of results that parks them. Nothing is handed back: what becomes ready goes through the queue."""

    def __init__(self, engine: Engine, random: Random) -> None:
        self._engine, self._random = engine, random

    async def process(self, results: Sequence[Result], caller: Caller, *, wait: bool = True) -> Advanced:
        """Store and park the results, then tell the orchestrators. Raises `DatabaseUnavailable`."""
        changes = [self._change(result) for result in results]
        answer = await self._engine.call("park", f'{{"worker":"{caller.worker}","items":{items_text(changes)}}}')
        advanced = Advanced(refused=_refused(answer.get("verdicts") or {}))
        delays = [change.delay_ms for change in changes if change.delay_ms is not None]
        advanced.retry_in_ms = min(delays) if delays else None
        await self._announce(answer.get("parked") or [])
        return advanced

    def _change(self, result: Result) -> Change:
        step = result.plan.by_name[result.outcome.claim.template_step]
        return change_of(result.outcome, result.text, step, self._random.random())

    async def _announce(self, parked: Sequence[Mapping[str, Any]]) -> None:
        if not parked:
            return
        try:
            await self._engine.messaging.send_step_results(parked)
        except MessagingError as error:
            _log.warning("step_results_not_announced count=%s reason=%s", len(parked), error)


class ParkedResults:
    """Ends parked steps: the orchestrator's half of the path."""

    def __init__(self, engine: Engine, processor: Processor, plans: PlanStore) -> None:
        self._engine, self._processor, self._plans = engine, processor, plans

    def longest_pause(self) -> float:
        """Seconds until messages of a crashed process are visible again."""
        return self._engine.rules.hidden_seconds

    async def receive(self, caller: Caller, limit: int) -> tuple[int, Advanced]:
        """Take messages of the results queue and end their steps; how many messages there were.

        What points to no step is set aside (RT-49). Raises `DatabaseError`, after which the messages come again.
        """
        messages = await self._engine.messaging.receive_step_results(limit, self._engine.rules.hidden_seconds)
        try:
            steps = [step for message in messages if (step := await self._step_of(message))]
            advanced = await self.end(steps, caller)
        except DatabaseError:
            await self._engine.give_back(messages)
            raise
        await self._engine.messaging.ack_messages(messages)
        return len(messages), advanced

    async def _step_of(self, message: QueuedMessage) -> str | None:
        try:
            return str(UUID(json.loads(message.payload)["step"]))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            reason = f"the message points to no parked step: {error!r:.200}"
            _log.warning("step_result_refused id=%s reason=%s", message.message_id, reason)
            await self._engine.set_aside(message.queue, message.message_id, message.payload, reason)
            return None

    async def end(self, steps: Sequence[str], caller: Caller, repairs: str | None = None) -> Advanced:
        """Complete, retry or fail these steps as they were parked; steps that have moved on are left alone.

        `repairs` is the kind of repair that this counts as.
        """
        advanced = Advanced()
        if steps:
            found = await self._engine.read("parked", {"steps": list(steps)})
            plain = [row for row in found["items"] if not await self._expands(row)]
            if plain:
                changes = [_parked_change(row) for row in plain]
                advanced.add(await self._processor.bring(changes, caller, repairs=repairs))
            for row in found["items"]:
                if row not in plain:
                    await self._expand(row, caller, advanced, repairs)
        return advanced

    async def _expand(self, row: Mapping[str, Any], caller: Caller, advanced: Advanced, repairs: str | None) -> None:
        """Planned again while the graph changes; in the end the step stays parked and the sweep brings it again."""
        for _ in range(MAX_REPLANS):
            answer = await self._processor.bring([await self._expansion(row)], caller, repairs=repairs)
            if Verdict.REPLAN not in (answer.get("verdicts") or {}).values():
                advanced.add(answer)
                return

    async def _expands(self, row: Mapping[str, Any]) -> bool:
        plan = await self._plans.get(row["template"])
        return row["kind"] == "ok" and plan.steps[row["ordinal"]].type in EXPANDING

    async def _expansion(self, row: Mapping[str, Any]) -> Change:
        plan: Plan = await self._plans.get(row["template"])
        result = row["result"] if isinstance(row["result"], Mapping) else {}
        try:
            growth = await plan_growth(self._engine, plan, row["task"], row["name"], result)
        except OutcomeError as error:
            failure = {"message": str(error), "error_type": "invalid_outcome", "retryable": False}
            return simple_change("fail", row["step"], row["task"], row["token"], e=failure)
        return with_growth(_parked_change(row), growth)


def _parked_change(row: Mapping[str, Any]) -> Change:
    delay = {"d": row["delay_ms"]} if row["kind"] == "retry" else {}
    return simple_change(row["kind"], row["step"], row["task"], row["token"], **delay)


def _refused(verdicts: Mapping[str, str]) -> dict[str, Verdict]:
    return {step: Verdict(verdict) for step, verdict in verdicts.items() if verdict != Verdict.ALREADY_ACCEPTED}
