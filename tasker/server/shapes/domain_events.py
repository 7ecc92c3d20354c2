"""Schemas of domain events."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from tasker.server.shapes.texts import Moment
from tasker.template.names import MAX_POSITION
from tasker.views.events import PublishedEvent


class EventListResponse(BaseModel):
    """Page of events; `last` is the position to continue from, or null for events without a position."""

    events: list[PublishedEvent]
    last: int | None


class ReplayEventsRequest(BaseModel):
    """Position or time from which a subscriber reads again; exactly one of the two."""

    model_config = ConfigDict(extra="forbid")

    after: int | None = Field(default=None, ge=0, le=MAX_POSITION, description="Behind this position.")
    since: Moment | None = Field(default=None, description="What was published then, and later.")
