"""Sending: durable messages with ids of ours, every one confirmed by the broker."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime

from aiormq.exceptions import PublishError
from pamqp.commands import Basic
from pamqp.common import FieldTable

from tasker_rabbitmq.link import PUBLISH, REPLY_SECONDS, Link

IN_FLIGHT = 500
"""Messages that are published before their confirmations are awaited."""
READS = "x-tasker-reads"
"""Header: how often the message was received before it was sent again with a delay, which resets the broker's count."""


async def publish(
    link: Link, name: str, messages: Sequence[tuple[int, bytes]], sent_at: datetime, *, reads: int = 0
) -> None:
    """Send (id, payload) pairs in order to the queue of that name on the broker.

    Raises `KeyError` when it does not exist, `MessagingError` otherwise; some may have been sent then.
    """
    headers: FieldTable | None = {READS: reads} if reads else None
    for start in range(0, len(messages), IN_FLIGHT):
        channel = await link.channel(PUBLISH)
        sends = [
            channel.basic_publish(
                payload,
                routing_key=name,
                properties=Basic.Properties(delivery_mode=2, message_id=str(id_), timestamp=sent_at, headers=headers),
                mandatory=True,
                timeout=REPLY_SECONDS,
                wait=False,
            )
            for id_, payload in messages[start : start + IN_FLIGHT]
        ]
        async with link.answered(channel):
            try:
                await asyncio.gather(*sends)
            except PublishError as error:
                raise KeyError(name) from error
