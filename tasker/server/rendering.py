"""JSON answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
import pydantic_core
from starlette.responses import Response

from tasker.services.submission.submit import SubmissionResult
from tasker.views.task_lists import TransitionDetail
from tasker.views.tasks import TaskReport

View = dict[str, Any]


def task_view(task: Mapping[str, Any]) -> View:
    """Return a task, which in a list has no steps."""
    return {"steps": [], **task}


def task_created(task: Mapping[str, Any], submitted: SubmissionResult) -> View:
    """Return a task that was just created or that already existed."""
    existing = "A task with this unique key runs" if submitted.unique else "A task with this identity exists"
    message = "Task created successfully" if submitted.created else existing
    made = {
        "step_count": submitted.step_count,
        "message": message,
        "created": submitted.created,
        "unique": submitted.unique,
    }
    return {**task_view(task), **made}


def task_context(task: Mapping[str, Any]) -> View:
    """Return the input of a task and its progress."""
    names = (
        "task_uuid",
        "named_task_uuid",
        "status",
        "execution_status",
        "recommended_action",
        "health_status",
        "total_steps",
        "pending_steps",
        "in_progress_steps",
        "completed_steps",
        "failed_steps",
        "ready_steps",
        "context",
    )
    enqueued = sum(step["current_state"] == "enqueued" for step in task["steps"])
    percentage = f"{task['completion_percentage']:.2f}"
    return {**{name: task[name] for name in names}, "enqueued_steps": enqueued, "completion_percentage": percentage}


def task_details(task: Mapping[str, Any], report: TaskReport, history: Sequence[TransitionDetail]) -> View:
    """Return a task with the results of its steps and its history."""
    steps = [
        {
            "step_uuid": step.step_uuid,
            "name": step.name,
            "current_state": step.state,
            "attempts": step.attempts,
            "result": step.result,
            "error": step.error,
            "duration_ms": step.duration_ms,
        }
        for step in report.steps.values()
    ]
    return {
        "task": task_view(task),
        "steps": steps,
        "state_transitions": [transition(row) for row in history if row.kind == "task"],
        "step_transitions": [transition(row) for row in history if row.kind == "step"],
    }


def transition(row: TransitionDetail) -> View:
    return {"step": row.step, "from_state": row.from_state, "to_state": row.to_state, "timestamp": row.at}


class Json(Response):
    """Answer whose data is encoded as JSON once, in native code; times become ISO 8601 in UTC."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        try:
            return orjson.dumps(content, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_UTC_Z)
        except TypeError:  # integer beyond 64 bits: values of tasks may contain one, and 1e20 comes back as one
            return pydantic_core.to_json(content)
