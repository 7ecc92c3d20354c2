"""Dead letters over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tasker.client.calls.paths import path
from tasker.client.connection import HttpConnection

ENTRIES = "/v1/dlq"
REPLAYS = "/v1/dlq/replays"


class DeadLetterCalls:
    """Calls of the dead letter API. Results are plain data as described by the OpenAPI document."""

    connection: HttpConnection
    initiator: str

    async def list_dead_letters(
        self,
        *,
        status: str | None = None,
        reason: str | None = None,
        namespace: str | None = None,
        template: str | None = None,
        fingerprint: str | None = None,
        limit: int = 50,
        offset: int = 0,
    ) -> list[dict[str, Any]]:
        """Return the entries that match all given filters, newest first."""
        which = {"resolution_status": status, "reason": reason, "namespace": namespace, "template": template}
        params = {**which, "fingerprint": fingerprint, "limit": limit, "offset": offset}
        return list(await self.connection.get(ENTRIES, params))

    async def get_dead_letter_entry(self, entry_uuid: str) -> dict[str, Any]:
        """Return one entry. Raises `DeadLetterNotFound`."""
        return dict(await self.connection.get(path(ENTRIES, "entry", entry_uuid)))

    async def dead_letter_groups(self, *, limit: int = 50) -> list[dict[str, Any]]:
        """Return pending entries grouped by failure fingerprint, the largest group first."""
        return list(await self.connection.get(f"{ENTRIES}/groups", {"limit": limit}))

    async def open_dead_letter(
        self,
        task_uuid: str,
        *,
        reason: str = "manual_dlq",
        notes: str | None = None,
        actor: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Create a dead letter entry for a task; the task itself is not changed.

        Raises `TaskNotFound`, and `StateMachineError` if the task already has a pending entry.
        """
        fields = {"task_uuid": task_uuid, "reason": reason, "notes": notes, "metadata": metadata}
        return dict(await self.connection.send("POST", ENTRIES, body={**fields, "actor": actor or self.initiator}))

    async def get_dead_letter(self, task_uuid: str) -> dict[str, Any]:
        """Return the newest entry of a task. Raises `DeadLetterNotFound`."""
        return dict(await self.connection.get(path(ENTRIES, "task", task_uuid)))

    async def update_dead_letter(
        self,
        entry_uuid: str,
        *,
        status: str | None = None,
        notes: str | None = None,
        by: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Add notes and metadata to an entry, or close it by its `status`; its task is not changed.

        Raises `DeadLetterNotFound`.
        """
        body = {"resolution_status": status, "resolution_notes": notes, "resolved_by": by, "metadata": metadata}
        await self.connection.send("PATCH", path(ENTRIES, "entry", entry_uuid), body=body)

    async def retry_dead_letter(self, entry_uuid: str, *, reason: str = "", by: str | None = None) -> dict[str, Any]:
        """Reset every failed step of the entry's task and close the entry, in one transaction.

        The result has the names of the steps in `reset`, and in `left` those that may run only once. If no step was
        reset, the entry stays open.

        Raises `DeadLetterNotFound`, and `StateMachineError` for a cancelled task.
        """
        body = {"reason": reason, "actor": by or self.initiator}
        return dict(await self.connection.send("POST", path(ENTRIES, "entry", entry_uuid, "retry"), body=body))

    async def dead_letter_stats(self) -> list[dict[str, Any]]:
        """Return the counts of entries for each reason that has any."""
        return list(await self.connection.get(f"{ENTRIES}/stats"))

    async def investigation_queue(self, *, limit: int = 100) -> list[dict[str, Any]]:
        """Return pending entries, the most urgent first."""
        return list(await self.connection.get(f"{ENTRIES}/investigation-queue", {"limit": limit}))

    async def staleness(self, *, limit: int = 100) -> list[dict[str, Any]]:
        """Return the open tasks by staleness: stale tasks first, then warnings, then healthy ones."""
        return list(await self.connection.get(f"{ENTRIES}/staleness", {"limit": limit}))

    async def list_replays(self, *, limit: int = 50) -> list[dict[str, Any]]:
        """Return the replays, newest first."""
        return list(await self.connection.get(REPLAYS, {"limit": limit}))

    async def get_replay(self, replay_uuid: str) -> dict[str, Any]:
        """Return the progress of a replay. Raises `DeadLetterNotFound`."""
        return dict(await self.connection.get(path(REPLAYS, replay_uuid)))

    async def begin_replay(
        self,
        which: Mapping[str, Any],
        *,
        rate: float = 10.0,
        note: str = "",
        actor: str | None = None,
        dry_run: bool = False,
    ) -> dict[str, Any]:
        """Replay a group of dead letters at `rate` tasks per second; with `dry_run` only return what would be done.

        `which` has `fingerprint`, `namespace`, `template`, `reason`, `since`, `limit`, or `all`: True. The result has
        `replay_uuid` (None if there is nothing to do), `tasks`, `steps`, `once`, `templates`.
        """
        options = {"rate_per_second": rate, "note": note, "actor": actor or self.initiator, "dry_run": dry_run}
        return dict(await self.connection.send("POST", REPLAYS, body={**which, **options}))

    async def steer_replay(self, replay_uuid: str, state: str) -> dict[str, Any]:
        """Set a replay to `paused`, `running` or `cancelled`. Raises `StateMachineError` if it has ended."""
        return dict(await self.connection.send("PATCH", path(REPLAYS, replay_uuid), body={"state": state}))
