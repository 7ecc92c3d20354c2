"""Events that were sent to steps that wait for them."""

from __future__ import annotations

from datetime import datetime

from tasker.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SentEvent:
    """Answer to the sender of an event. A `duplicate` has the `event_uuid` of the first event with its `dedupe_id`."""

    event_uuid: str
    duplicate: bool
    matched: int
    """Number of waits that took it at once; others may take it later."""
    refused: int = 0
    """If no wait took it: number of waits for it whose schema its payload does not fit."""


@dataclass(frozen=True, slots=True)
class IncomingEvent:
    """Event as stored, without its payload.

    `exclusive`: one wait takes it, then `taken_by` is its task. Otherwise every wait of its name and key takes it until
    `expires_at`. `taken` and `refused` are numbers of waits: the payload did not fit the schema of the latter.
    """

    event_uuid: str
    namespace: str
    name: str
    key: str
    bytes: int
    exclusive: bool
    dedupe_id: str | None
    sent_by: str
    sent_at: datetime
    expires_at: datetime
    taken_by: str | None
    taken: int
    refused: int
