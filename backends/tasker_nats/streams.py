"""Streams and subjects: their names, how they are made, what they hold.

`--` cannot occur in a queue's name nor `-` in a prefix, so no two queues share a stream, whatever the prefixes.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from tasker_nats.link import Link
from tasker_nats.settings import NatsSettings

CONSUMER = "tasker"
"""The durable pull consumer that all processes share."""
DEAD_LETTERS_KEPT = 10_000
"""Dead letters beyond this number push out the oldest."""
PAGE = 1024
"""Names that the server lists in one answer."""


class Streams:
    """Makes, removes and counts them."""

    def __init__(self, link: Link, settings: NatsSettings) -> None:
        self._link, self._settings, self._prefix = link, settings, settings.prefix

    def name(self, queue: str) -> str:
        """The stream of a queue."""
        return f"{self._prefix}--{queue}"

    def subject(self, queue: str) -> str:
        """Where the queue's messages are published."""
        return f"{self._prefix}.queue.{queue}"

    def ready(self, queue: str) -> str:
        """Where it is announced that the queue has something."""
        return f"{self._prefix}.ready.{queue}"

    async def create(self, queue: str) -> None:
        """Make the stream, unless it is there, and its consumer, with the current settings."""
        stream = self.name(queue)
        if await self._info(stream) is None:
            await self._create(stream, self.subject(queue), retention="workqueue")
        config = {
            "durable_name": CONSUMER,
            "ack_policy": "explicit",
            "ack_wait": round(self._settings.ack_wait_seconds * 1e9),
            "max_deliver": -1,  # the server would leave a message that reached its limit in the stream for ever
            "max_ack_pending": -1,
        }
        path = f"CONSUMER.DURABLE.CREATE.{stream}.{CONSUMER}"
        await self._link.api(path, {"stream_name": stream, "config": config})

    async def dead_letters(self, queue: str) -> str:
        """The subject for dead letters of a queue, backed by a stream that all queues share."""
        if await self._info(f"{self._prefix}-dead") is None:
            await self._create(f"{self._prefix}-dead", f"{self._prefix}.dead.*", max_msgs=DEAD_LETTERS_KEPT)
        return f"{self._prefix}.dead.{queue}"

    async def _create(self, stream: str, subject: str, **more: object) -> None:
        config = {"name": stream, "subjects": [subject], "storage": "file", "num_replicas": self._settings.replicas}
        await self._link.api(f"STREAM.CREATE.{stream}", {**config, **more})

    async def delete(self, queue: str) -> None:
        """Remove the stream with its messages and its consumer."""
        await self._link.api(f"STREAM.DELETE.{self.name(queue)}")

    async def queues(self) -> list[str]:
        """Names of all queues under this prefix, sorted."""
        names: list[str] = []
        request = {"subject": self.subject("*")}
        while answer := await self._link.api("STREAM.NAMES", {**request, "offset": len(names)}):
            names += answer["streams"] or []
            if len(names) >= answer["total"]:
                break
        return sorted(name.removeprefix(f"{self._prefix}--") for name in names)

    async def state(self, queue: str) -> tuple[int, datetime | None] | None:
        """Number of messages, and when the first of them was stored; None when there is no such queue."""
        info = await self._info(self.name(queue))
        if info is None:
            return None
        state = info["state"]
        return state["messages"], datetime.fromisoformat(state["first_ts"]) if state["messages"] else None

    async def _info(self, stream: str) -> dict[str, Any] | None:
        return await self._link.api(f"STREAM.INFO.{stream}")
