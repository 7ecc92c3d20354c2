"""Schemas of steps."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, RootModel

from tasker.server.shapes.texts import Text


class ManualCompletionData(BaseModel):
    """Result of a step that an operator completes; `metadata` is stored with it."""

    result: dict[str, Any]
    metadata: dict[str, Any] | None = None


class ResetForRetry(BaseModel):
    """Action that runs a step in `error` again with its attempts counted from zero."""

    model_config = ConfigDict(extra="forbid")

    action_type: Literal["reset_for_retry"]
    reason: Text
    reset_by: Text


class ResolveManually(BaseModel):
    """Action that marks a step as done without a result."""

    model_config = ConfigDict(extra="forbid")

    action_type: Literal["resolve_manually"]
    reason: Text
    resolved_by: Text


class CompleteManually(BaseModel):
    """Action that marks a step as done with a result."""

    model_config = ConfigDict(extra="forbid")

    action_type: Literal["complete_manually"]
    reason: Text
    completed_by: Text
    completion_data: ManualCompletionData


class StepManualAction(RootModel[ResetForRetry | ResolveManually | CompleteManually]):
    """Operator action on a step, selected by `action_type`."""

    root: ResetForRetry | ResolveManually | CompleteManually = Field(discriminator="action_type")
