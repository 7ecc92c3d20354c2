"""Notification of plugins and a log line for each task that a submission created."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING

from tasker.contracts.hook_arguments import TaskSubmitted
from tasker.contracts.plan import Plan
from tasker.contracts.tracing import TraceContext
from tasker.log_lines import ids_of_task, log_line
from tasker.services.engine.answers import SubmitAnswer
from tasker.services.engine.listeners import WriteListeners

if TYPE_CHECKING:
    from tasker.services.submitting.submission import Draft

_log = logging.getLogger("tasker.submission")


def log_created_tasks(
    listeners: WriteListeners, plan: Plan, drafts: Sequence[Draft], answer: SubmitAnswer, began: float
) -> None:
    """Log and publish those of the drafts that became tasks, submitted at `began` (`perf_counter`)."""
    created = [draft for draft in drafts if draft.task_uuid in answer.created]
    listeners.submitted(plan, map(_submitted, created), began)
    if _log.isEnabledFor(logging.INFO):
        duration_ms = round((perf_counter() - began) * 1000)
        for draft in created:
            task, trace = draft.task_uuid, draft.item.get("trace")
            place = TraceContext(**trace) if trace else None
            ids = ids_of_task(task, _correlation(draft), plan.namespace, place)
            said = {"duration_ms": duration_ms, "template": plan.name, "step_count": answer.steps}
            log_line(_log, logging.INFO, f"Task initialized: task_uuid={task}", ids | said)


def _submitted(draft: Draft) -> TaskSubmitted:
    return TaskSubmitted(draft.task_uuid, _correlation(draft), **(draft.item.get("trace") or {}))


def _correlation(draft: Draft) -> str:
    found: str = draft.item["correlation"] or draft.task_uuid
    return found
