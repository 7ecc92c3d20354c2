"""Streams and subjects: names, creation, content.

`--` cannot occur in a queue's name nor `-` in a prefix, so no two queues share a stream, for any prefixes.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime

from tasker.errors import MessagingError
from tasker_nats.link import Link
from tasker_nats.settings import NatsSettings

CONSUMER = "tasker"
"""Name of the durable pull consumer that all processes share."""
DEAD_LETTERS_KEPT = 10_000
"""Maximum number of dead letters; new ones replace the oldest."""


class Streams:
    """Administration of the streams of queues."""

    def __init__(self, link: Link, settings: NatsSettings) -> None:
        self._link, self._settings, self._prefix = link, settings, settings.prefix

    def name(self, queue: str) -> str:
        return f"{self._prefix}--{queue}"

    def subject(self, queue: str, purpose: str = "queue") -> str:
        """Return the subject of a queue; purpose `ready` is for announcements, `dead` for dead letters."""
        return f"{self._prefix}.{purpose}.{queue}"

    async def create(self, queue: str) -> None:
        """Create the stream if it does not exist, and create or update its consumer with the current settings."""
        stream = self.name(queue)
        await self._ensure(stream, self.subject(queue), {"retention": "workqueue"})
        config = {
            "durable_name": CONSUMER,
            "ack_policy": "explicit",
            "ack_wait": round(self._settings.ack_wait_seconds * 1e9),
            "max_deliver": -1,  # with a limit the server would never remove a message that reached it
            "max_ack_pending": -1,
        }
        path, request = f"CONSUMER.DURABLE.CREATE.{stream}.{CONSUMER}", {"stream_name": stream, "config": config}
        if info := await self._link.api(path, request):
            await self._remove_settled(stream, info["ack_floor"]["stream_seq"])

    async def _remove_settled(self, stream: str, acknowledged: int) -> None:
        """Remove messages up to `acknowledged` that a killed server may have kept although it stored their
        acknowledgement.

        They are deleted one by one: after a purge, servers forget messages in flight and never deliver them again.
        """
        removed = 0
        while removed < (first := await self._first(stream)) <= acknowledged:
            with suppress(MessagingError):  # another process may have deleted it
                await self._link.api(f"STREAM.MSG.DELETE.{stream}", {"seq": first, "no_erase": True})
            removed = first

    async def _first(self, stream: str) -> int:
        """Return the sequence number of the first stored message, or 0 if there is none."""
        info = await self._link.api(f"STREAM.INFO.{stream}")
        return info["state"]["first_seq"] if info and info["state"]["messages"] else 0

    async def _ensure(self, stream: str, subject: str, more: dict[str, object]) -> None:
        if await self._link.api(f"STREAM.INFO.{stream}") is None:
            replicas = self._settings.replicas
            config = {"name": stream, "subjects": [subject], "storage": "file", "num_replicas": replicas, **more}
            await self._link.api(f"STREAM.CREATE.{stream}", config)

    async def bury(self, queue: str, payload: bytes) -> None:
        """Copy a payload to the dead letters, a stream that all queues share."""
        await self._ensure(f"{self._prefix}-dead", self.subject("*", "dead"), {"max_msgs": DEAD_LETTERS_KEPT})
        await self._link.publish(self.subject(queue, "dead"), [payload])

    async def delete(self, queue: str) -> None:
        """Delete the stream with its messages and its consumer."""
        await self._link.api(f"STREAM.DELETE.{self.name(queue)}")

    async def queues(self) -> list[str]:
        names: list[str] = []
        while answer := await self._link.api("STREAM.NAMES", {"subject": self.subject("*"), "offset": len(names)}):
            names += answer["streams"] or []
            if len(names) >= answer["total"]:
                break
        return sorted(name.removeprefix(self.name("")) for name in names)

    async def state(self, queue: str) -> tuple[int, int, datetime | None] | None:
        """Return (depth, messages in flight, time of the first message), or None if there is no such queue."""
        info = await self._link.api(f"CONSUMER.INFO.{self.name(queue)}.{CONSUMER}")
        if info is None:
            return None
        in_flight: int = info["num_ack_pending"]
        depth = info["num_pending"] + in_flight
        stored = await self._link.api(f"STREAM.INFO.{self.name(queue)}") if depth else None
        return depth, in_flight, datetime.fromisoformat(stored["state"]["first_ts"]) if stored else None
