"""Schedules over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from tasker.client.calls.paths import path
from tasker.client.connection import HttpConnection
from tasker.views.schedules import parts_of

SCHEDULES = "/v1/schedules"


def _path(schedule: str, *parts: str) -> str:
    """Return the path of a schedule, named `namespace/template/name`. Raises `UsageError` for other names."""
    return path(SCHEDULES, *parts_of(schedule), *parts)


class ScheduleCalls:
    """Calls on schedules, which are named `namespace/template/name`. Results are plain data as described by the OpenAPI
    document.

    Calls on one schedule raise `ScheduleNotFound`.
    """

    connection: HttpConnection
    initiator: str

    async def list_schedules(
        self, *, namespace: str | None = None, template: str | None = None, after: str = "", limit: int = 100
    ) -> list[dict[str, Any]]:
        """Return schedules by namespace, template and name, behind the one named `after`; at most 500."""
        params = {"namespace": namespace, "template": template, "after": after, "limit": limit}
        return list(await self.connection.get(SCHEDULES, params))

    async def get_schedule(self, schedule: str) -> dict[str, Any]:
        """Return one schedule with the context of its tasks."""
        return dict(await self.connection.get(_path(schedule)))

    async def list_fires(
        self, schedule: str, *, limit: int = 50, before: datetime | None = None
    ) -> list[dict[str, Any]]:
        """Return fires, the newest first, with what became of each."""
        params = {"limit": limit, "before": before and before.isoformat()}
        return list(await self.connection.get(_path(schedule, "fires"), params))

    async def list_upcoming_fires(
        self, schedule: str, *, count: int = 10, after: datetime | None = None
    ) -> list[dict[str, Any]]:
        """Return the next fire times, at most 100."""
        params = {"count": count, "after": after and after.isoformat()}
        return list(await self.connection.get(_path(schedule, "upcoming"), params))

    async def create_schedule(
        self,
        schedule: str,
        keys: Mapping[str, Any],
        *,
        version: str | None = None,
        overwrite: bool = False,
        actor: str | None = None,
    ) -> dict[str, Any]:
        """Create a schedule of a registered template; `keys` are those of a schedule in a template."""
        namespace, template, name = parts_of(schedule)
        named = {"namespace": namespace, "template": template, "name": name, "version": version}
        body = {**named, "schedule": dict(keys), "overwrite": overwrite, "actor": actor or self.initiator}
        return dict(await self.connection.send("POST", SCHEDULES, body=body))

    async def pause_schedule(self, schedule: str, *, reason: str = "", actor: str | None = None) -> bool:
        """Pause a schedule. Return False if it is paused already."""
        return bool((await self._act(schedule, "pause", reason, actor))["changed"])

    async def resume_schedule(self, schedule: str, *, reason: str = "", actor: str | None = None) -> bool:
        """End a pause. Return False if there is none."""
        return bool((await self._act(schedule, "resume", reason, actor))["changed"])

    async def trigger_schedule(self, schedule: str, *, reason: str = "", actor: str | None = None) -> str:
        """Submit a task of the schedule now, and return its id."""
        return str((await self._act(schedule, "trigger", reason, actor))["task_uuid"])

    async def delete_schedule(self, schedule: str, *, reason: str = "", actor: str | None = None) -> None:
        """Delete a schedule with its history."""
        params = {"reason": reason, "actor": actor or self.initiator}
        await self.connection.send("DELETE", _path(schedule), params=params)

    async def backfill_schedule(
        self,
        schedule: str,
        begin: datetime,
        end: datetime,
        *,
        dry_run: bool = False,
        reason: str = "",
        actor: str | None = None,
    ) -> dict[str, Any]:
        """Submit the tasks of past fire times from `begin` until before `end`; `dry_run` only returns the times."""
        span = {"begin": begin.isoformat(), "end": end.isoformat(), "dry_run": dry_run}
        return dict(await self._act(schedule, "backfill", reason, actor, **span))

    async def _act(self, schedule: str, action: str, reason: str, actor: str | None, **more: Any) -> dict[str, Any]:
        body = {**more, "reason": reason, "actor": actor or self.initiator}
        return dict(await self.connection.send("POST", _path(schedule, action), body=body))
