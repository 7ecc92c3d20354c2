"""Expansion by the result of a decision or batchable step: the pure planner decides, SQL writes (rule 8)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace

from tasker.contracts.execution import Failure
from tasker.errors import DatabaseError, TaskNotFound
from tasker.lifecycle.outcomes import OutcomeError
from tasker.lifecycle.storable import as_stored
from tasker.log_lines import ids_of, log_line
from tasker.orchestration.changes import change_of, with_growth
from tasker.services.engine.calls import Engine
from tasker.services.engine.changes import StepChange
from tasker.services.engine.exchange import Result
from tasker.services.engine.graph import first_graph, plan_growth

UNUSABLE = "result_unusable"
_log = logging.getLogger("tasker.decisions")


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
        known = None if read else first_graph(result.plan, claim.name)
        growth = await plan_growth(engine, result.plan, claim.task_uuid, claim.name, decided, known)
    except OutcomeError as error:
        return change_of(replace(result, outcome=_refused(error)), 0.0)
    except TaskNotFound:  # the database has lost the task, and refuses the result
        return change_of(result, 0.0)
    except DatabaseError:
        raise
    except Exception as error:
        failure = Failure(message=unplannable(error), error_type=UNUSABLE, retryable=False)
        log_line(_log, logging.ERROR, "expansion_unusable", ids_of(claim) | {"error": failure.message}, raised=True)
        return change_of(replace(result, outcome=failure), 0.0)
    if engine.rules.log_expansions:
        created = ",".join(row["name"] for row in growth.steps) or "nothing"
        log_line(_log, logging.INFO, "expansion", ids_of(claim) | {"creates": created})
    return with_growth(change_of(_with_warnings(result, growth.warnings), 0.0), growth)


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
