"""Matching of incoming events with the steps that wait for them.

An event and its wait commit in any order. After its commit, each side searches for the other. Unmatched ones are in an
index, so after a crash the timekeeper finds them within a second (`tasker.unmatched_v1`).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from tasker.dataclasses import dataclass
from tasker.db.connection import DataRefused
from tasker.engine.calls import Engine
from tasker.engine.exchange import AdvanceResult, Answer, OnAdvanced
from tasker.engine.plans import PlanStore
from tasker.errors import LockTimeout, PlanUnreadable, StatementTimeout
from tasker.template.schema_check import check_result

PAIRS, EVENTS = 200, 200
"""Maximum number of pairs of one read, and of the events and waits that it searches."""
ROUNDS = 2
"""Reads of one pass; the next pass continues. Senders wait for their pass, and timers for that of the timekeeper."""
MOST_SHOWN = 500
"""Characters of the reason why a payload did not fit."""
_log = logging.getLogger("tasker.orchestration")


@dataclass(frozen=True, slots=True)
class MatchAnswer(AdvanceResult):
    """Answer of `tasker.match_event_v1`."""

    matched: bool = False

    @classmethod
    def more(cls, answer: Answer) -> dict[str, Any]:
        return {"matched": bool(answer.get("matched"))}


class EventMatcher:
    """Matcher of events and waits; any number may run. `on_advanced` gets the answers of the engine."""

    def __init__(self, engine: Engine, plans: PlanStore, on_advanced: OnAdvanced = lambda _: None) -> None:
        self._engine, self._plans, self._on_advanced = engine, plans, on_advanced

    async def match(self, event_uuid: str | None = None) -> int:
        """Match unmatched events and waits; return how many waits took an event, or how many took `event_uuid`.

        What cannot be written now, such as the wait of a task that another transaction has locked for long, is left to
        the next pass, and stops no other. Raises `DatabaseError`.
        """
        matched = 0
        for _ in range(ROUNDS):
            answer = await self._engine.read("unmatched", {"limit": PAIRS, "events": EVENTS})
            skipped = list[Mapping[str, Any]]()
            for pair in answer["pairs"]:
                try:
                    taken = await self._try(pair)
                except (LockTimeout, StatementTimeout, PlanUnreadable, DataRefused) as error:
                    _log.warning("event_skipped event=%s task=%s reason=%s", pair["event"], pair["task"], error)
                    skipped.append(pair)
                else:
                    matched += taken and event_uuid in (None, pair["event"])
            left = [pair["event"] for pair in skipped]
            waits_left = [[pair["step"], pair["token"], pair["nth"]] for pair in skipped]
            events = [event for event in answer["events"] if event not in left]
            waits = [wait for wait in answer["waits"] if wait not in waits_left]
            if events or waits:
                await self._engine.read("looked", {"events": events, "waits": waits})
            if skipped or not answer["more"]:
                break
        return matched

    async def _try(self, pair: Mapping[str, Any]) -> bool:
        schema = await self._schema(pair)
        key = {name: pair[name] for name in ("event", "step", "token", "nth", "task")}
        if schema is not None and (problems := check_result(schema, pair["payload"])):
            problem = "; ".join(str(problem) for problem in problems)[:MOST_SHOWN]
            await self._engine.read("refuse_event", {**key, "problem": problem})
            return False
        answer = await self._engine.call_typed("match_event", key, MatchAnswer)
        self._on_advanced(answer)
        return answer.matched

    async def _schema(self, pair: Mapping[str, Any]) -> Any:
        """Return the schema of the payload, from the wait of a handler or from the template."""
        if (of_handler := pair["wait"]) is not None:
            return of_handler["schema"]
        plan = await self._plans.get(pair["template"])
        return (plan.steps[pair["ordinal"]].wait or {})["events"][pair["nth"] - 1].get("schema")
