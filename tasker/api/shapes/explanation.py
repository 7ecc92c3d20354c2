"""Why a task does not go on, in answers."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel


class ExplainedReason(BaseModel):
    """Steps that do not run for the same reason, `count` of them, the first by name; `template_steps` are those of
    the template. Sentences tell times in UTC."""

    reason: str
    steps: list[str]
    template_steps: list[str]
    count: int
    sentence: str
    remedy: str
    needs_somebody: bool
    since: datetime | None
    values: dict[str, Any]


class ExplanationResponse(BaseModel):
    """What holds a task, what needs somebody first. Without reasons nothing of it is left to run."""

    task_uuid: str
    namespace: str
    template: str
    status: str
    finished: bool
    at: datetime
    processes_at_work: int
    needs_somebody: bool
    reasons: list[ExplainedReason]
    more_reasons: int
