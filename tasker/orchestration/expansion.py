"""What the result of a decision or batchable step creates: the pure planner decides, SQL writes (rule 8)."""

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
    """True when storing this result creates steps (or must decide that it creates none)."""
    return result.plan.steps[result.claim.ordinal].type.expands and result.success is not None


async def plan_expansion(engine: Engine, result: Result, *, read: bool = False) -> StepChange:
    """The change for a decision's or batchable step's result, with the steps it creates.

    The task's graph is read where its plan does not tell it, or if `read`: because that has turned out wrong.
    A malformed outcome is a permanent failure of the step that says what is wrong; nothing is created.
    Whatever else is raised would be raised again each time, and hold up the results of others.
    """
    claim = result.claim
    value = result.success and as_stored(result.success.encoded)
    decided = value if isinstance(value, Mapping) else {}
    try:
        known = None if read else first_graph(result.plan, claim.name)
        growth = await plan_growth(engine, result.plan, claim.task_uuid, claim.name, decided, known)
    except OutcomeError as error:
        return change_of(replace(result, outcome=_refused(error)), 0.0)
    except TaskNotFound:  # the database has lost it, and refuses the result
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
    """What is said of a step whose result a defect of ours does not understand."""
    return f"what the step decided cannot be planned: {error!r}"


def _refused(error: OutcomeError) -> Failure:
    hint = {"hint": error.hint} if error.hint else {}
    return Failure(message=str(error), error_type="invalid_outcome", retryable=False, metadata=hint)


def _with_warnings(result: Result, warnings: tuple[str, ...]) -> Result:
    if not warnings or result.success is None:
        return result
    noted = {**result.success.metadata, "expansion_warnings": list(warnings)}
    return replace(result, outcome=replace(result.success, metadata=noted))
