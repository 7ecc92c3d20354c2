"""What operators look at, in answers: the values of the services, whole."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from tasker.api.shapes.texts import Name, Text


class HistoryEntry(BaseModel):
    """A change of state of a task (`kind` is `task`) or of one of its steps, with who made it and why."""

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


class RetryRequest(BaseModel):
    """Why failed steps run again, and who says so."""

    model_config = ConfigDict(extra="forbid")

    reason: Text = ""
    actor: Text | None = None


class RerunRequest(BaseModel):
    """From which step a task runs again, with which input (by default its own), why, and who says so."""

    model_config = ConfigDict(extra="forbid")

    from_step: Text | None = Field(None, description="Without one the first step that failed, or the first of all.")
    context: dict[str, Any] | None = Field(None, description="The whole input of the new task.")
    set: dict[Name, Any] = Field(
        {}, max_length=100, description="Values for single fields of the input, by their paths, such as `address.zip`."
    )
    reason: Text = ""
    actor: Text | None = None


class Finding(BaseModel):
    """Something that was found: what, some of it, and what to do. `wrong` is false for what mends by itself."""

    check: str
    what: str
    fix: str
    wrong: bool
    examples: list[str]


class DoctorResponse(BaseModel):
    """What was looked at, and what was found."""

    wrong: bool
    checks: list[str]
    findings: list[Finding]
