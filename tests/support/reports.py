"""Reports of tasks, made without a database."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from tasker.views.model import encode, from_row
from tasker.views.tasks import COUNTS, StepReport, TaskCreated, TaskReport, extended, task_of

NOON = "2026-01-31T12:00:00+00:00"
TASK = {
    "task_uuid": "uuid", "namespace": "shop", "template": "checkout", "version": "1.0.0", "execution_status": "",
    "context": {}, "priority": 0, "tags": (), "initiator": "unknown", "status": "complete", "created_at": NOON,
    "updated_at": NOON, **dict.fromkeys(COUNTS, 0),
}  # fmt: skip


def report_of(steps: Iterable[StepReport], **fields: Any) -> TaskReport:
    """A report with these steps; fields that are left out are those of a task without any option."""
    return from_row(TaskReport, TASK, steps={step.name: step for step in steps}, **fields)


def sent_task(**fields: Any) -> dict[str, Any]:
    """A created task as a server sends it."""
    created = extended(TaskCreated, task_of(TASK), step_count=0, message="", created=True)
    return {**json.loads(json.dumps(encode(TaskCreated, created), default=str)), **fields}
