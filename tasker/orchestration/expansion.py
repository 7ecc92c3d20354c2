"""What the result of a decision or batchable step creates: the pure planner decides, SQL writes (rule 8)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tasker.contracts.execution import Failure, Outcome
from tasker.lifecycle.outcomes import OutcomeError
from tasker.orchestration.changes import Change, change_of, with_growth
from tasker.services.engine.calls import Engine
from tasker.services.engine.exchange import Result
from tasker.services.engine.graph import plan_growth

_log = logging.getLogger("tasker.decisions")


def expands(result: Result) -> bool:
    """True when storing this result creates steps (or must decide that it creates none)."""
    outcome = result.outcome
    return outcome.failure is None and result.plan.by_name[outcome.claim.template_step].type.expands


async def plan_expansion(engine: Engine, result: Result) -> Change:
    """The change for a decision's or batchable step's result, with the steps it creates.

    A malformed outcome is a permanent failure of the step that says what is wrong; nothing is created (C-22, C-52).
    """
    outcome, claim = result.outcome, result.outcome.claim
    decided = outcome.result if isinstance(outcome.result, Mapping) else {}
    try:
        growth = await plan_growth(engine, result.plan, claim.task_uuid, claim.name, decided)
    except OutcomeError as error:
        return change_of(Result(_refused(outcome, error), result.plan), 0.0)
    if engine.rules.log_expansions:
        created = ",".join(row["name"] for row in growth.steps) or "nothing"
        _log.info("expansion task=%s step=%s creates=%s", claim.task_uuid, claim.name, created)
    warned = replace(result, outcome=_with_warnings(outcome, growth.warnings))
    return with_growth(change_of(warned, 0.0), growth)


def _refused(outcome: Outcome, error: OutcomeError) -> Outcome:
    failure = Failure(message=str(error), error_type="invalid_outcome", retryable=False, metadata=_hint(error))
    return Outcome(outcome.claim, outcome.duration_ms, failure=failure)


def _hint(error: OutcomeError) -> dict[str, Any]:
    return {"hint": error.hint} if error.hint else {}


def _with_warnings(outcome: Outcome, warnings: tuple[str, ...]) -> Outcome:
    if not warnings:
        return outcome
    metadata = {**outcome.metadata, "expansion_warnings": list(warnings)}
    return Outcome(outcome.claim, outcome.duration_ms, outcome.result, metadata)
