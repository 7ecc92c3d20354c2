"""Answers for operators."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from tasker.server.shapes.texts import Name, Text


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


class HistoryEntry(BaseModel):
    """State change of a task (`kind` is `task`) or one of its steps, with its author and reason."""

    kind: str
    step: str | None
    from_state: str | None
    to_state: str
    at: datetime
    sort_key: int
    worker: str | None
    attempt: int | None
    metadata: dict[str, Any] | None
    execution_time_ms: int | None


class RerunRequest(BaseModel):
    """First step, input (by default the task's own), reason and actor of a rerun."""

    model_config = ConfigDict(extra="forbid")

    from_step: Text | None = Field(None, description="Without one the first step that failed, or the first of all.")
    context: dict[str, Any] | None = Field(None, description="The whole input of the new task.")
    set: dict[Name, Any] = Field(
        {}, max_length=100, description="Values for single fields of the input, by their paths, such as `address.zip`."
    )
    reason: Text = ""
    actor: Text | None = None
