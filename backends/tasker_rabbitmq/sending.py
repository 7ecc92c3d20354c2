"""Sending: durable messages with ids of ours, every one confirmed by the broker."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from functools import partial

from aiormq.exceptions import PublishError
from pamqp.commands import Basic
from pamqp.common import FieldTable

from tasker_rabbitmq.link import PUBLISH, REPLY_SECONDS, Link

IN_FLIGHT = 500
"""Messages that are published before their confirmations are awaited."""
READS = "x-tasker-reads"
"""Header: how often the message was received before it was sent again with a delay, which resets the broker's count."""


Messages = Sequence[tuple[int, bytes]]
"""Ids and payloads."""


async def publish(link: Link, name: str, messages: Messages, sent_at: datetime, reads: int) -> None:
    """Send in order to the queue of that name on the broker, as messages that were received `reads` times.

    Raises `KeyError` when it does not exist, `MessagingError` otherwise; some may have been sent then.
    """
    for start in range(0, len(messages), IN_FLIGHT):
        channel = await link.channel(PUBLISH)
        send = partial(channel.basic_publish, routing_key=name, mandatory=True, timeout=REPLY_SECONDS, wait=False)
        burst = messages[start : start + IN_FLIGHT]
        sends = [send(payload, properties=_properties(id_, sent_at, reads)) for id_, payload in burst]
        async with link.answered(channel):
            try:
                await asyncio.gather(*sends)
            except PublishError as error:
                raise KeyError(name) from error


def _properties(message_id: int, sent_at: datetime, reads: int) -> Basic.Properties:
    headers: FieldTable | None = {READS: reads} if reads else None
    return Basic.Properties(delivery_mode=2, message_id=str(message_id), timestamp=sent_at, headers=headers)
