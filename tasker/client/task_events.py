"""Parser of the server-sent events of a task."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from datetime import datetime
from typing import Any, Literal

from tasker.dataclasses import dataclass

Kind = Literal["transition", "progress", "end"]


@dataclass(frozen=True, slots=True)
class TaskEvent:
    """Event of a task.

    It is a `transition` of the task (`step` is None) or of a step, the `progress` of a step (`items_processed`, or as
    `reported` by its handler), or the `end` with the final state of the task as `to_state`.

    `place` is the position at which a reader resumes after this event; only transitions have one.
    """

    kind: Kind
    to_state: str | None = None
    from_state: str | None = None
    step: str | None = None
    step_uuid: str | None = None
    at: datetime | None = None
    worker_uuid: str | None = None
    attempt: int | None = None
    items_processed: int | None = None
    place: str | None = None
    reported: Mapping[str, Any] | None = None

    @property
    def key(self) -> tuple[object, ...]:
        """Return the key that is unique among the transitions of a task."""
        return self.step_uuid, self.to_state, self.at, self.attempt


async def read_events(lines: AsyncIterator[str]) -> AsyncGenerator[TaskEvent, None]:
    """Parse the lines of a stream and yield its events; an incomplete event and an unknown kind are skipped."""
    fields: dict[str, str] = {}
    async for line in lines:
        if line:
            name, _, value = line.partition(":")
            fields[name] = f"{fields['data']}\n{value[1:]}" if name == "data" in fields else value.removeprefix(" ")
            continue
        event = _event(fields)
        fields = {}
        if event is not None:
            yield event


def _event(fields: dict[str, str]) -> TaskEvent | None:
    kind = fields.get("event")
    if kind not in ("transition", "progress", "end") or "data" not in fields:
        return None
    data: dict[str, Any] = json.loads(fields["data"])
    if kind == "end":
        return TaskEvent("end", to_state=data["status"])
    known: dict[str, Any] = {name: data.get(name) for name in TaskEvent.__dataclass_fields__ if name in data}
    known["at"] = datetime.fromisoformat(data["at"])
    if kind == "progress":
        known["reported"] = {name: value for name, value in data.items() if name not in known} or None
    return TaskEvent(**{**known, "kind": kind, "place": fields.get("id")})
