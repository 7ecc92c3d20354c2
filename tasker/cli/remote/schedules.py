"""Schedules for commands: the service on a database, and the same through a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from tasker.cli.remote.decoding import decoded, decoded_list
from tasker.client.http_client import HttpClient
from tasker.views.schedules import Backfill, Schedule, ScheduleFire, UpcomingFire


class ScheduleService(Protocol):
    """Methods of `tasker.services.schedules.Schedules`, documented there."""

    async def list(
        self, *, namespace: str | None = None, template: str | None = None, after: str = "", limit: int = 100
    ) -> Sequence[Schedule]: ...
    async def get(self, address: str) -> Schedule: ...
    async def fires(
        self, address: str, *, limit: int = 50, before: datetime | None = None
    ) -> Sequence[ScheduleFire]: ...
    async def upcoming(
        self, address: str, *, count: int = 10, after: datetime | None = None
    ) -> Sequence[UpcomingFire]: ...
    async def create(
        self,
        address: str,
        keys: Mapping[str, Any],
        *,
        version: str | None = None,
        overwrite: bool = False,
        actor: str = "",
    ) -> Schedule: ...
    async def pause(self, address: str, *, actor: str = "", reason: str = "") -> bool: ...
    async def resume(self, address: str, *, actor: str = "", reason: str = "") -> bool: ...
    async def delete(self, address: str, *, actor: str = "", reason: str = "") -> None: ...
    async def trigger(self, address: str, *, actor: str = "", reason: str = "") -> str: ...
    async def plan_backfill(self, address: str, begin: datetime, end: datetime) -> Backfill: ...
    async def backfill(
        self, address: str, begin: datetime, end: datetime, *, actor: str = "", reason: str = ""
    ) -> Backfill: ...


class HttpSchedules:
    """`tasker.services.schedules.Schedules` through a server."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client

    async def list(
        self, *, namespace: str | None = None, template: str | None = None, after: str = "", limit: int = 100
    ) -> Sequence[Schedule]:
        which = {"namespace": namespace, "template": template}
        return decoded_list(Schedule, await self._client.list_schedules(**which, after=after, limit=limit))

    async def get(self, address: str) -> Schedule:
        return decoded(Schedule, await self._client.get_schedule(address))

    async def fires(self, address: str, *, limit: int = 50, before: datetime | None = None) -> Sequence[ScheduleFire]:
        return decoded_list(ScheduleFire, await self._client.list_fires(address, limit=limit, before=before))

    async def upcoming(self, address: str, *, count: int = 10, after: datetime | None = None) -> Sequence[UpcomingFire]:
        return decoded_list(UpcomingFire, await self._client.list_upcoming_fires(address, count=count, after=after))

    async def create(
        self,
        address: str,
        keys: Mapping[str, Any],
        *,
        version: str | None = None,
        overwrite: bool = False,
        actor: str = "",
    ) -> Schedule:
        more: dict[str, Any] = {"version": version, "overwrite": overwrite, "actor": actor}
        return decoded(Schedule, await self._client.create_schedule(address, keys, **more))

    async def pause(self, address: str, *, actor: str = "", reason: str = "") -> bool:
        return await self._client.pause_schedule(address, reason=reason, actor=actor)

    async def resume(self, address: str, *, actor: str = "", reason: str = "") -> bool:
        return await self._client.resume_schedule(address, reason=reason, actor=actor)

    async def delete(self, address: str, *, actor: str = "", reason: str = "") -> None:
        await self._client.delete_schedule(address, reason=reason, actor=actor)

    async def trigger(self, address: str, *, actor: str = "", reason: str = "") -> str:
        return await self._client.trigger_schedule(address, reason=reason, actor=actor)

    async def plan_backfill(self, address: str, begin: datetime, end: datetime) -> Backfill:
        return decoded(Backfill, await self._client.backfill_schedule(address, begin, end, dry_run=True))

    async def backfill(
        self, address: str, begin: datetime, end: datetime, *, actor: str = "", reason: str = ""
    ) -> Backfill:
        why: dict[str, Any] = {"reason": reason, "actor": actor}
        return decoded(Backfill, await self._client.backfill_schedule(address, begin, end, **why))
