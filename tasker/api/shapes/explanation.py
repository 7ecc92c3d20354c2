"""Schemas of the explanation of why a task does not proceed."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel


class ExplainedReason(BaseModel):
    """Reason that `count` steps do not run; the first of them are listed by name.

    `template_steps` are their steps in the template. Times in the sentences are in UTC.
    """

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
    """Reasons that a task does not proceed, those that need an operator first; no reasons if no steps are left to
    run."""

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
