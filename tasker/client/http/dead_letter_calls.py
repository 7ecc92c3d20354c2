"""Dead letters over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tasker.client.http.connection import HttpConnection
from tasker.client.http.paths import path

ENTRIES = "/v1/dlq"
REPLAYS = "/v1/dlq/replays"


class DeadLetterCalls:
    """What a client asks of tasks that need a person; answers are plain data, as the interface describes them."""

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
        """Entries, the newest first; all that is given is true of them."""
        which = {"resolution_status": status, "reason": reason, "namespace": namespace, "template": template}
        params = {**which, "fingerprint": fingerprint, "limit": limit, "offset": offset}
        return list(await self.connection.get(ENTRIES, params))

    async def get_dead_letter_entry(self, entry_uuid: str) -> dict[str, Any]:
        """One entry. Raises `DeadLetterNotFound`."""
        return dict(await self.connection.get(path(ENTRIES, "entry", entry_uuid)))

    async def dead_letter_groups(self, *, limit: int = 50) -> list[dict[str, Any]]:
        """Pending entries by what failed, the largest group first."""
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
        """Put a task on the list by hand; the task itself goes on. Raises `TaskNotFound`, and `StateMachineError` when
        it has a pending entry."""
        given = {"task_uuid": task_uuid, "reason": reason, "notes": notes, "metadata": metadata}
        return dict(await self.connection.send("POST", ENTRIES, body={**given, "actor": actor or self.initiator}))

    async def get_dead_letter(self, task_uuid: str) -> dict[str, Any]:
        """The newest entry of a task. Raises `DeadLetterNotFound`."""
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
        """Keep what was found, and close the entry; its task stays as it is. Raises `DeadLetterNotFound`."""
        given = {"resolution_status": status, "resolution_notes": notes, "resolved_by": by, "metadata": metadata}
        await self.connection.send("PATCH", path(ENTRIES, "entry", entry_uuid), body=given)

    async def retry_dead_letter(self, entry_uuid: str, *, reason: str = "", by: str | None = None) -> dict[str, Any]:
        """Let every failed step of its task run again, and close the entry, all or none: the names in `reset`, and in
        `left` those that may run only once. Where nothing runs again the entry stays as it is.

        Raises `DeadLetterNotFound`, and `StateMachineError` for a task that was cancelled.
        """
        body = {"reason": reason, "actor": by or self.initiator}
        return dict(await self.connection.send("POST", path(ENTRIES, "entry", entry_uuid, "retry"), body=body))

    async def dead_letter_stats(self) -> list[dict[str, Any]]:
        """Counts for each reason that has entries."""
        return list(await self.connection.get(f"{ENTRIES}/stats"))

    async def investigation_queue(self, *, limit: int = 100) -> list[dict[str, Any]]:
        """Pending entries, the most urgent first."""
        return list(await self.connection.get(f"{ENTRIES}/investigation-queue", {"limit": limit}))

    async def staleness(self, *, limit: int = 100) -> list[dict[str, Any]]:
        """Open tasks before they are dead letters: stale ones, then warnings, then healthy ones."""
        return list(await self.connection.get(f"{ENTRIES}/staleness", {"limit": limit}))

    async def list_replays(self, *, limit: int = 50) -> list[dict[str, Any]]:
        """Replays, the newest first."""
        return list(await self.connection.get(REPLAYS, {"limit": limit}))

    async def get_replay(self, replay_uuid: str) -> dict[str, Any]:
        """How far a replay has come. Raises `DeadLetterNotFound`."""
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
        """Let the failed steps of a group run again, `rate` tasks per second, or only say what that would do.

        `which` has `fingerprint`, `namespace`, `template`, `reason`, `since`, `limit`, or `all`: True. The answer has
        `replay_uuid` (None: nothing to do), `tasks`, `steps`, `once`, `templates`.
        """
        given = {"rate_per_second": rate, "note": note, "actor": actor or self.initiator, "dry_run": dry_run}
        return dict(await self.connection.send("POST", REPLAYS, body={**which, **given}))

    async def steer_replay(self, replay_uuid: str, state: str) -> dict[str, Any]:
        """Make it `paused`, `running` or `cancelled`. Raises `StateMachineError` when it has ended."""
        return dict(await self.connection.send("PATCH", path(REPLAYS, replay_uuid), body={"state": state}))
